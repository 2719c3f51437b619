"""The harness itself: each mistake that it exists for is planted in a cell and must be caught, by name."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from common import load
from common.cell.case import INPUTS, Case, difference, outputs
from common.check.cell import CellSubject
from common.check.subject import check_subject

equations = load(1).equations
checked = load(1).lltm


def rows_as_a_cuda_grid(input, weights, bias, old_h, old_cell):
    """Leaves the rows beyond 65535 unwritten, as a kernel with the batch in grid.y does."""
    new_h, new_cell = checked(input, weights, bias, old_h, old_cell)
    return new_h * (torch.arange(len(new_h)) < 65535)[:, None], new_cell


def one_block_of_columns(input, weights, bias, old_h, old_cell):
    new_h, new_cell = checked(input, weights, bias, old_h, old_cell)
    return new_h * (torch.arange(new_h.size(1)) < 1024), new_cell


def one_warp_of_columns(input, weights, bias, old_h, old_cell):
    new_h, new_cell = checked(input, weights, bias, old_h, old_cell)
    return new_h, new_cell * (torch.arange(new_h.size(1)) < 32)


def no_empty_batch(input, weights, bias, old_h, old_cell):
    if len(input) == 0:
        raise RuntimeError("invalid configuration argument")
    return checked(input, weights, bias, old_h, old_cell)


def gates_in_another_order(input, weights, bias, old_h, old_cell):
    S = old_h.size(1)
    order = torch.cat([torch.arange(S, 2 * S), torch.arange(S), torch.arange(2 * S, 3 * S)])
    checked(input, weights, bias, old_h, old_cell)
    return equations(input, weights[order], bias[order], old_h, old_cell)


def returns_its_inputs(input, weights, bias, old_h, old_cell):
    checked(input, weights, bias, old_h, old_cell)
    return old_h * 1, old_cell * 1


def not_a_number(input, weights, bias, old_h, old_cell):
    return tuple(t * float("nan") for t in checked(input, weights, bias, old_h, old_cell))


def cell_is_detached(input, weights, bias, old_h, old_cell):
    return checked(input, weights, bias, old_h, old_cell.detach())


def narrowed_to_float(input, weights, bias, old_h, old_cell):
    checked(input, weights, bias, old_h, old_cell)
    new_h, new_cell = equations(*(t.float() for t in (input, weights, bias, old_h, old_cell)))
    return new_h.to(input.dtype), new_cell.to(input.dtype)


def changes_its_argument(input, weights, bias, old_h, old_cell):
    result = checked(input, weights, bias, old_h, old_cell)
    old_cell.data.add_(1)
    return result


def elu_by_a_mask(input, weights, bias, old_h, old_cell):
    checked(input, weights, bias, old_h, old_cell)
    z_i, z_o, z_g = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    mask = (z_g > 0).to(z_g.dtype)
    new_cell = old_cell + (mask * z_g + (1 - mask) * torch.expm1(z_g)) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def stretches_what_is_too_short(input, weights, bias, old_h, old_cell):
    return equations(input, weights, bias, old_h, old_cell)


def stale_output():
    last = []

    def lltm(input, weights, bias, old_h, old_cell):
        last.append(checked(input, weights, bias, old_h, old_cell))
        before = last[-2] if len(last) > 1 and last[-2][0].shape == last[-1][0].shape else last[-1]
        return before[0].detach() + 0 * last[-1][0], last[-1][1]

    return lltm


def by_function(**changes):
    """The cell as an autograd.Function whose backward calls autograd on the equations, with a method replaced."""

    class LLTMFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            checked(*inputs)
            ctx.save_for_backward(*inputs)
            return equations(*inputs)

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            return Gradient.apply(grad_h, grad_cell, *ctx.saved_tensors)

    for name, method in changes.items():
        setattr(LLTMFunction, name, staticmethod(method))
    return LLTMFunction.apply


class Gradient(torch.autograd.Function):
    """The gradient of the cell; its own gradient is refused, by a node that leads to all that it gets."""

    @staticmethod
    def forward(ctx, grad_h, grad_cell, *inputs):
        return gradient(inputs, grad_h, grad_cell)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("the gradient is once_differentiable")


def gradient(inputs, grad_h, grad_cell):
    with torch.enable_grad():
        inputs = [t.detach().requires_grad_() for t in inputs]
        return torch.autograd.grad(equations(*inputs), inputs, (grad_h, grad_cell))


def without_strides(ctx, grad_h, grad_cell):
    """Walks the gradient's memory as if it were contiguous; past the end of an expanded one there is no telling."""
    memory = grad_h.new_zeros(grad_h.numel())
    flat = torch.as_strided(
        grad_h, (min(grad_h.untyped_storage().nbytes() // grad_h.element_size(), memory.numel()),), (1,), 0
    )
    memory[: len(flat)] = flat
    return gradient(ctx.saved_tensors, memory.view(grad_h.shape), grad_cell)


def in_place_on_the_gradient(ctx, grad_h, grad_cell):
    result = gradient(ctx.saved_tensors, grad_h, grad_cell)
    grad_cell.mul_(2)
    return result


def expects_both(ctx, grad_h, grad_cell):
    return gradient(ctx.saved_tensors, grad_h + grad_cell - grad_cell, grad_cell)


def keeps_undefined(ctx, *inputs):
    checked(*inputs)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs)
    return equations(*inputs)


def silent_twice(ctx, grad_h, grad_cell):
    """First derivatives from detached tensors, connected to grad_h and grad_cell only: the second are wrong."""
    zero = 0 * (grad_h.sum() + grad_cell.sum())
    return tuple(t + zero for t in gradient(ctx.saved_tensors, grad_h.detach(), grad_cell.detach()))


@once_differentiable
def refused_by_torch(ctx, grad_h, grad_cell):
    """Its refusal leads to none of the arguments."""
    return gradient(ctx.saved_tensors, grad_h, grad_cell)


def refused_without(*names):
    """The refusal does not lead to the named arguments: they are detached, as saved intermediates are."""

    def backward(ctx, grad_h, grad_cell):
        inputs = [t.detach() if name in names else t for name, t in zip(INPUTS, ctx.saved_tensors, strict=True)]
        return Gradient.apply(grad_h.detach(), grad_cell.detach(), *inputs)

    return backward


class LosesTangents(torch.autograd.Function):
    """The identity, whose derivative in forward mode is zero."""

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad

    @staticmethod
    def jvp(ctx, tangent):
        return torch.zeros_like(tangent)


def loses_tangents(*inputs):
    new_h, new_cell = checked(*inputs)
    return LosesTangents.apply(new_h), new_cell


MISTAKES = {
    "sizes": [rows_as_a_cuda_grid, one_block_of_columns, one_warp_of_columns, no_empty_batch, gates_in_another_order],
    "layouts of inputs and gradients": [returns_its_inputs, not_a_number, cell_is_detached, changes_its_argument,
                                        by_function(backward=without_strides),
                                        by_function(backward=in_place_on_the_gradient)],
    "gradients for some outputs": [by_function(backward=without_strides), stale_output(),
                                   by_function(forward=keeps_undefined, backward=once_differentiable(expects_both))],
    "gradients of some inputs": [not_a_number, stale_output()],
    "saturated gates": [elu_by_a_mask],
    "gradcheck": [narrowed_to_float, cell_is_detached],
    "second derivatives": [by_function(backward=silent_twice), by_function(backward=refused_by_torch),
                           by_function(backward=refused_without("bias")),
                           by_function(backward=refused_without(*INPUTS))],
    "transforms": [cell_is_detached, loses_tangents],
    "refusals": [stretches_what_is_too_short],
    "not finite": [lambda *inputs: tuple(t.nan_to_num() for t in checked(*inputs))],
}  # fmt: skip


def subject_of(lltm) -> CellSubject:
    return CellSubject(1, "host", "cpu", torch.float64, lltm, 1)


def test_a_right_cell_passes():
    assert {row.outcome for row in check_subject(subject_of(by_function()))} == {"passed", "not run"}


@pytest.mark.parametrize(
    ("name", "lltm"),
    [pytest.param(n, f, id=f"{n}-{k}-{f.__name__}") for n, group in MISTAKES.items() for k, f in enumerate(group)],
)
def test_a_mistake_is_caught(name, lltm):
    rows = {row.name: row for row in check_subject(subject_of(lltm))}
    assert rows[name].outcome == "failed", rows[name]
    assert rows[name].message


def test_every_check_catches_something():
    rows = check_subject(subject_of(checked))
    assert {row.name for row in rows if row.outcome != "not run"} == set(MISTAKES)


def test_memory_that_nobody_wrote_is_nan():
    def lltm(input, weights, bias, old_h, old_cell):
        new_h, new_cell = equations(input, weights, bias, old_h, old_cell)
        return torch.empty_like(new_h), new_cell

    case = Case(2, 3, 4, requires_grad=())
    got = outputs(lltm, case)
    assert got["new_h"].isnan().all()
    assert "new_h is wrong at [0, 0]: got nan" in difference(case, got)


def test_the_message_says_where_and_how_much():
    case = Case(3, 5, 70)
    got = outputs(equations, case)
    got["d_old_cell"][:, 32:] = 0
    message = difference(case, got)
    assert message.startswith("d_old_cell is wrong at [0, 32]: got 0, expected ")
    assert "85 of 210 elements are wrong" in message
    assert "B=3, I=5, S=70, float32, cpu" in message


@pytest.mark.parametrize("factor", [0.999, 1.001, -1.0])
def test_small_errors_are_seen(factor):
    case = Case(3, 5, 70)
    got = outputs(equations, case)
    got["d_weights"] = got["d_weights"] * factor
    assert difference(case, got)


def test_layouts_are_what_they_say():
    for layout in ("transposed", "sliced", "offset"):
        inputs = Case(3, 5, 70, layout=layout).inputs()
        assert all(torch.equal(a, b) for a, b in zip(inputs.values(), Case(3, 5, 70).inputs().values(), strict=True))
        if layout == "offset":
            assert all(t.storage_offset() > 0 and t.is_contiguous() for t in inputs.values())
        else:
            assert not any(t.is_contiguous() for t in inputs.values())


def test_on_the_emulator_one_dtype_proves_the_loop_over_rows():
    def largest(target: str, dtype: torch.dtype) -> int:
        return max(case.B for case in CellSubject(3, target, "cpu", dtype, equations, 1).cases()["sizes"])

    assert largest("emulator", torch.float32) > 65535
    assert largest("emulator", torch.float64) == 100
    assert largest("cuda", torch.float64) == largest("host", torch.float64) > 65535
