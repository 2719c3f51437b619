"""Stage 0's Functions: when to write one, its parts, and what ctx is for (0.1 to 0.3)."""

from __future__ import annotations

import math

import numpy
import pytest
import torch
from torch.autograd import Function, gradcheck

from common import load
from common.cell.memory import saved_bytes
from support.labs import definitions
from support.profiled import operations

functions, linear = load(0).functions, load(0).linear
shown, outputs = definitions("00a_autograd"), definitions("00b_second_derivatives")
KNOTS, VALUES = [0.0, 1.0, 3.0], [1.0, 2.0, -5.0]


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def gradient(y: torch.Tensor, x: torch.Tensor) -> list:
    return torch.autograd.grad(y.sum(), x)[0].tolist()


class Doubled(Function):
    """What many of the tests vary: twice its first argument."""

    @staticmethod
    def forward(ctx, x, *others):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


# 0.1 ----------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.1a")
def test_numpy_is_refused_unseen_or_wrapped():
    x = leaf(-0.5, 0.5, 2.0)
    with pytest.raises(RuntimeError, match="requires grad"):
        numpy.interp(x, KNOTS, VALUES)
    unseen = torch.as_tensor(numpy.interp(x.detach().numpy(), KNOTS, VALUES))
    assert not unseen.requires_grad
    wrapped = functions.interp(x, KNOTS, VALUES)
    assert torch.equal(wrapped, unseen)
    assert gradient(wrapped, x) == [0.0, 1.0, -3.5]


@pytest.mark.parametrize("shape", [(0,), (2, 3), ()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_interp_keeps_shape_and_dtype(shape, dtype):
    x = torch.rand(shape, dtype=dtype, requires_grad=True)
    y = functions.interp(x.t() if x.dim() == 2 else x, KNOTS, VALUES)
    assert y.dtype == dtype
    (d_x,) = torch.autograd.grad(y.sum(), x)
    assert (d_x.shape, d_x.dtype) == (x.shape, dtype)


@pytest.mark.parametrize(
    ("knots", "values", "message"),
    [
        ([0.0, 1.0], [0.0], "2 knots and 1 values"),
        ([1.0, 0.0], [0.0, 0.0], "knots are"),
        ([0.0], [0.0], "two or more"),
    ],
)
def test_interp_refuses_what_is_no_line(knots, values, message):
    with pytest.raises(RuntimeError, match=f"interp: .*{message}"):
        functions.interp(leaf(0.5), knots, values)
    with pytest.raises(RuntimeError, match="interp: x has dtype"):
        functions.interp(torch.tensor([1]), KNOTS, VALUES)


@pytest.mark.syllabus("0.1b")
def test_swish_keeps_nothing_beside_its_input():
    x = torch.randn(100, 30, requires_grad=True)
    assert saved_bytes(lambda: functions.swish(x), [x]) == 0
    assert saved_bytes(lambda: x * torch.sigmoid(x), [x]) == x.numel() * 4


@pytest.mark.syllabus("0.1c")
def test_swish_is_one_node_and_fewer_operations():
    x, grad, counts = torch.randn(9, requires_grad=True), torch.randn(9), []
    y = functions.swish(x, 1.5)  # kept: with its last result an older torch frees the node
    assert "AccumulateGrad" in y.grad_fn.next_functions[0][0].name()
    for function in (functions.swish, lambda x, beta: x * torch.sigmoid(beta * x)):
        called = operations(lambda function=function: torch.autograd.grad(function(x, 1.5), x, grad))
        counts.append(len(called))
    ours, formula = counts
    assert ours == 5 < formula


@pytest.mark.syllabus("0.1d")
def test_a_plain_function_has_all_derivatives():
    x = leaf(2.0)
    y, found = x * x * x, []
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y.item())
    assert found == [12, 12, 6]


@pytest.mark.syllabus("0.1e", "0.6b")
def test_state_is_found_only_in_parameters():
    module = linear.Linear(3, 2)
    plain = torch.nn.Module()
    plain.weight = torch.zeros(2, 3, requires_grad=True)
    assert [name for name, _ in module.named_parameters()] == ["weight", "bias"] == list(module.state_dict())
    assert not list(plain.parameters())
    assert not plain.state_dict()
    before = module.weight.detach().clone()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(module.weight, before)
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD(plain.parameters(), lr=0.1)


@pytest.mark.syllabus("0.1f")
def test_a_hook_sees_and_changes_a_gradient():
    x, seen = leaf(1.0, 2.0), []
    y = x * 10
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.register_hook(lambda grad: grad.clamp(max=1.0))
    assert gradient(y * torch.tensor([0.5, 7.0]), x) == [5, 10]
    assert seen == [[0.5, 7.0]]


@pytest.mark.syllabus("0.1g")
def test_an_operator_goes_through_torch_compile_where_a_function_does_not():
    @torch.library.custom_op("test_stage0::interp", mutates_args=())
    def operator(x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(numpy.interp(x.numpy(), KNOTS, VALUES))

    class Refused(Doubled):
        @staticmethod
        def forward(ctx, x):
            return torch.as_tensor(numpy.interp(x.numpy(), KNOTS, VALUES))

    operator.register_fake(torch.empty_like)
    operator.register_autograd(Doubled.backward)
    x = leaf(-0.5, 0.5, 2.0)
    compiled = torch.compile(lambda x: operator(x) + x, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), functions.interp(x, KNOTS, VALUES) + x)
    assert gradient(compiled(x), x) == [3, 3, 3]
    assert torch.equal(Refused.apply(x), operator(x))
    with pytest.raises(RuntimeError):
        torch.compile(lambda x: Refused.apply(x) + x, backend="eager", fullgraph=True)(x)


@pytest.mark.syllabus("0.1h")
def test_a_gradient_straight_through_is_no_derivative():
    x = leaf(0.2, 0.8, -1.3)
    assert torch.equal(shown.Round.apply(x), x.round())
    assert gradient(shown.Round.apply(x) ** 2, x) == gradient(shown.plain_round(x) ** 2, x) == [0, 2, -2]
    assert gradient(x.round() ** 2, x) == [0, 0, 0]
    assert gradcheck(torch.round, x)
    assert not gradcheck(shown.Round.apply, x, raise_exception=False)


# 0.2 ----------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.2a")
def test_both_forms_give_the_same_gradients():
    a, b = leaf(2.0), leaf(5.0)
    for kind in (shown.Product, shown.ProductInParts):
        assert [one.item() for one in torch.autograd.grad(kind.apply(a, b), (a, b))] == [5, 2]
    assert torch.func.grad(shown.ProductInParts.apply)(torch.tensor(2.0), torch.tensor(5.0)) == 5
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.grad(shown.Product.apply)(torch.tensor(2.0), torch.tensor(5.0))


@pytest.mark.syllabus("0.2b")
def test_only_tensors_passed_directly_are_tracked():
    class First(Function):
        @staticmethod
        def forward(ctx, several):
            return next(iter(several.values() if isinstance(several, dict) else several)) * 1

    x = leaf(1.0)
    assert not First.apply([x]).requires_grad
    assert not First.apply({"x": x}).requires_grad
    assert First.apply(x.unsqueeze(0)).requires_grad


@pytest.mark.syllabus("0.2c", "0.2d")
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda grad: grad, r"expected 2, got 1"),
        (lambda grad: (grad, None), None),
        (lambda grad: (grad, None, None, None), None),
        (lambda grad: (grad, None, grad), r"expected 2, got 3"),
        (lambda grad: (grad, grad), r"different than None at position 2"),
    ],
)
def test_a_gradient_for_each_argument(returned, message):
    class Kind(Doubled):
        @staticmethod
        def backward(ctx, grad):
            return returned(grad * 2)

    x = leaf(1.0)
    if message is None:
        assert gradient(Kind.apply(x, "text"), x) == [2]
    else:
        with pytest.raises(RuntimeError, match=message):
            gradient(Kind.apply(x, "text"), x)


@pytest.mark.syllabus("0.2e")
def test_what_nobody_needs_is_not_computed():
    for needed in ((True, True), (True, False), (False, True)):
        input, weight = (torch.randn(4, 3).requires_grad_(need) for need in needed)
        output = linear.linear(input, weight)
        called = operations(lambda output=output: output.backward(torch.ones(4, 4), retain_graph=True))
        assert called.count("mm") == sum(needed)


@pytest.mark.syllabus("0.2f")
def test_a_changed_gradient_is_wrong_elsewhere():
    class InPlace(Doubled):
        @staticmethod
        def backward(ctx, grad):
            return grad.mul_(2)

    for kind, expected in ((Doubled, [3, 30]), (InPlace, [4, 40])):
        start = leaf(1.0, 1.0)
        x = start * 1
        (kind.apply(x) + x).backward(torch.tensor([1.0, 10.0], dtype=torch.float64))
        assert start.grad.tolist() == expected
        assert gradcheck(kind.apply, leaf(1.0))  # alone it is right


@pytest.mark.syllabus("0.2g")
def test_forward_alone_never_meets_backward():
    x = leaf(3.0)
    assert gradient(shown.WrongSquare.apply(x), x) == [1000]
    assert gradient(shown.WrongSquare.forward(x), x) == [6]


@pytest.mark.syllabus("0.2h")
def test_keywords_and_defaults_come_from_a_plain_function():
    with pytest.raises(TypeError):
        shown.Affine.apply(leaf(1.0), shift=5.0)
    x = leaf(1.0)
    assert torch.equal(functions.swish(x), functions.swish(x, beta=1.0))
    assert not torch.equal(functions.swish(x), functions.swish(x, beta=2.0))


@pytest.mark.syllabus("0.2i")
@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_what_the_transforms_of_torch_func_want():
    class Wrong(shown.SquareForAll):
        @staticmethod
        def jvp(ctx, change):
            return change * 3 * ctx.saved_tensors[0]

    x = torch.tensor([1.0, 2.0])
    expected = torch.diag(2 * x)
    for kind in (shown.SquareInParts, shown.SquareForAll):
        assert torch.equal(torch.func.jacrev(kind.apply)(x), expected)
    for transform in (torch.func.vmap, torch.func.jacfwd, torch.func.hessian):
        with pytest.raises(RuntimeError, match="does not have vmap support"):
            transform(shown.SquareInParts.apply)(x)
    with pytest.raises(NotImplementedError, match="jvp"):
        torch.func.jvp(shown.SquareInParts.apply, (x,), (x,))
    assert torch.equal(torch.func.vmap(shown.SquareForAll.apply)(x), x * x)
    assert torch.equal(torch.func.jacfwd(shown.SquareForAll.apply)(x), expected)
    assert torch.equal(torch.func.hessian(lambda x: shown.SquareForAll.apply(x).sum())(x), 2 * torch.eye(2))
    assert gradcheck(shown.SquareForAll.apply, leaf(0.5, -2.0), check_forward_ad=True)
    assert gradcheck(Wrong.apply, leaf(0.5))
    assert not gradcheck(Wrong.apply, leaf(0.5), check_forward_ad=True, raise_exception=False)


@pytest.mark.syllabus("0.2j")
@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[:2]], ids=["argument", "view"])
def test_what_is_returned_from_the_arguments_is_not_changed_in_place(part):
    class Part(Doubled):
        @staticmethod
        def forward(ctx, x, copied):
            return part(x).clone() if copied else part(x)

        @staticmethod
        def backward(ctx, grad):
            return torch.nn.functional.pad(grad, (0, 2 - grad.numel())), None

    def gradient_after_a_change(changed, copied):
        start = leaf(1.0, 2.0)
        x = start * 1
        y = Part.apply(x, copied)
        {"result": y, "base": x, "nothing": torch.ones(1)}[changed].mul_(5)
        return gradient(y, start)[0]

    assert gradient_after_a_change("nothing", copied=False) == 1
    assert gradient_after_a_change("result", copied=True) == 5
    assert gradient_after_a_change("base", copied=True) == 1
    for changed in ("result", "base"):
        with pytest.raises(RuntimeError, match="inside a custom Function"):
            gradient_after_a_change(changed, copied=False)


def test_a_gradient_of_another_dtype_is_converted_and_of_another_shape_refused():
    class Longer(Doubled):
        @staticmethod
        def backward(ctx, grad):
            return torch.ones(3)

    x = leaf(1.0, 1.0)
    (d_x,) = torch.autograd.grad(shown.InHalf.apply(x, 5).sum(), x)
    assert d_x.dtype == x.dtype
    assert d_x.tolist() == [torch.tensor(1 / 3).half().item()] * 2
    with pytest.raises(RuntimeError, match="invalid gradient"):
        gradient(Longer.apply(x), x)


# 0.3 ----------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.3a", "0.3b", "0.3c")
@pytest.mark.parametrize("what", ["input", "output", "intermediate"])
def test_a_saved_tensor_is_watched_and_an_attribute_is_not(what):
    class Tripled(Function):
        @staticmethod
        def forward(ctx, x, by_attribute):
            kept = {"input": x, "output": x * 1, "intermediate": x * 1}
            Tripled.kept, y = kept[what], kept["output"]
            ctx.factor = 3  # no tensor
            if by_attribute:
                ctx.kept = kept[what]
            else:
                ctx.save_for_backward(kept[what])
            return y

        @staticmethod
        def backward(ctx, grad):
            kept = ctx.kept if hasattr(ctx, "kept") else ctx.saved_tensors[0]
            return grad * ctx.factor * kept, None

    x = leaf(2.0)
    for by_attribute in (False, True):
        y = Tripled.apply(x, by_attribute)
        assert gradient(y, x) == [6]
        y = Tripled.apply(x, by_attribute)
        with torch.no_grad():
            (y if what == "output" else Tripled.kept).mul_(10)
        if by_attribute:
            assert gradient(y, x) == [60]  # of other numbers, and nobody says so
        else:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                gradient(y, x)
        x = leaf(2.0)


@pytest.mark.syllabus("0.3c")
def test_what_is_no_tensor_cannot_be_saved():
    class Kind(Doubled):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)

    with pytest.raises(TypeError, match="can only save variables"):
        Kind.apply(leaf(1.0))


@pytest.mark.syllabus("0.3d", "0.3e")
def test_mark_dirty_rewrites_the_history():
    for call, expected, name in (
        (functions.exp_, [1.0, math.e], "ExpBackward"),
        (outputs.ExpUntold.apply, [1.0, 1.0], "MulBackward0"),  # silently around it
    ):
        start = leaf(0.0, 1.0)
        x = start * 1
        call(x)
        assert x.tolist() == [1.0, math.e]
        assert x.grad_fn.name() == name
        assert gradient(x, start) == expected


@pytest.mark.syllabus("0.3d")
def test_a_leaf_is_refused_only_if_autograd_knows():
    with pytest.raises(RuntimeError, match="leaf"):
        functions.exp_(leaf(0.0))
    outputs.ExpUntold.apply(leaf(0.0))


@pytest.mark.syllabus("0.3f")
def test_a_mask_needs_a_mark_and_indices_do_not():
    class Masked(Function):
        @staticmethod
        def forward(ctx, x, mark):
            mask = (x > 0).to(x.dtype)
            if mark:
                ctx.mark_non_differentiable(mask)
            return x * mask, mask, x.argsort()

        @staticmethod
        def backward(ctx, grad_y, grad_mask, grad_order):
            return grad_y * 0, None

    x = leaf(-1.0, 2.0)
    assert [y.requires_grad for y in Masked.apply(x, False)] == [True, True, False]
    assert [y.requires_grad for y in Masked.apply(x, True)] == [True, False, False]
    assert gradient(Masked.apply(x, False)[1], x) == [0, 0]
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradient(Masked.apply(x, True)[1], x)


@pytest.mark.syllabus("0.3g", "0.3h")
def test_an_unused_output_gives_zeros_or_none():
    arrived = []

    class Both(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 5, x + 5

        @staticmethod
        def backward(ctx, grad_product, grad_sum):
            arrived.append(None if grad_sum is None else grad_sum.tolist())
            return grad_product * 5, None

    x = leaf(1.0)
    for materialize in (True, False):
        assert gradient(Both.apply(x, materialize)[0], x) == [5]
    assert arrived == [[0.0], None]
    with pytest.raises(TypeError, match="NoneType"):
        gradient(Both.apply(x, False)[1], x)


@pytest.mark.syllabus("0.3h")
def test_a_multiplication_by_a_constant_passes_none_on():
    x = leaf(1.0)
    assert gradient(functions.scale(x, -3.0), x) == [-3]
    y = outputs.Stop.apply(functions.scale(x, -3.0))
    assert torch.autograd.grad(y, x, torch.ones_like(y), allow_unused=True) == (None,)


@pytest.mark.syllabus("0.3i")
@pytest.mark.parametrize(
    ("keep", "survives_del", "survives_collector"),
    [
        (lambda ctx, y: ctx.save_for_backward(y), False, False),
        (lambda ctx, y: setattr(ctx, "y", y), True, False),
        (lambda ctx, y: ctx.save_for_backward(y.view(-1)), True, True),
    ],
    ids=["saved", "attribute", "a saved view"],
)
def test_an_output_kept_as_an_attribute_outlives_its_last_user(keep, survives_del, survives_collector):
    assert shown.outlives(keep, collect=False) == survives_del
    assert shown.outlives(keep, collect=True) == survives_collector


@pytest.mark.syllabus("0.3j")
def test_only_saved_tensors_are_freed_after_backward():
    class Kept(Doubled):
        @staticmethod
        def forward(ctx, x, by_attribute):
            ctx.save_for_backward(None if by_attribute else x)
            ctx.x = x if by_attribute else None
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x = ctx.x if ctx.x is not None else ctx.saved_tensors[0]
            return 2 * grad * x, None

    x = leaf(3.0)
    y = Kept.apply(x, True)
    assert gradient(y, x) == gradient(y, x) == [6]
    y = Kept.apply(x, False).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_a_second_save_for_backward_replaces_the_first():
    y = shown.SavesTwice.apply(leaf(1.0))
    none, later = y.grad_fn.saved_tensors
    assert none is None
    assert later.tolist() == [2.0]
