from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F

from common.exercises.judge import on_current_stream, require, right_or_refused, same, stored_once
from common.exercises.judging.kernels import few_reads
from common.exercises.judging.launches import large_batch

NAMES = ("new_h", "new_cell", "d_peepholes", "d_z", "d_old_cell")
# Typical mistakes, and the switches of `pointwise` that give the same numbers.
MISTAKES = {
    "the output gate uses old_cell, but it should use new_cell": {"output_sees": "old"},
    "the input gate's peephole is not used": {"input_sees": "nothing"},
    "the output gate's peephole is not used": {"output_sees": "nothing"},
    "new_cell's gradient through the output gate's peephole is missing": {"output_sees": "new, detached"},
    "old_cell's gradient through the input gate's peephole is missing": {"input_sees": "old, detached"},
}


def check(work):
    cell = work.load("peephole").pointwise
    for B, S in ((3, 70), (1, 33), (5, 300)):
        for dtype in (torch.float32, torch.float64):
            compare(cell, work.case(B, 1, S, dtype=dtype))
    for changes in ({"layout": "transposed"}, {"layout": "sliced"}, {"grads": "expanded"}):
        compare(cell, work.case(3, 1, 70, dtype=torch.float64, **changes))
    by_its_kernels(work, cell)
    each_unit_once(work, cell)
    large_batch(work, partial(compare, cell))
    large_cells(cell, work.case(3, 1, 70))
    inputs = [tensor.requires_grad_() for tensor in given(work.case(2, 1, 3, dtype=torch.float64))]
    right_or_refused(cell, pointwise, dict(zip(("z", "peepholes", "old_cell"), inputs, strict=True)))


def by_its_kernels(work, cell):
    """Checks that ATen only allocates, and in backward makes the five calls that compute d_peepholes, and that one
    thread stores each element."""
    case = work.case(3, 1, 70)
    unit = case.B * case.S * case.dtype.itemsize
    for (name, counted), most, units in zip(count_passes(work, cell, case).items(), (0, 5), (2, 4), strict=True):
        allocations = sum(number for call, number in counted.calls.items() if call.startswith("empty"))
        computes = f"{name} computes with ATen ({', '.join(counted.calls)}): compute this in the kernel"
        require(counted.all_calls - allocations <= most, computes)
        stored_once(counted.kernels, units * unit, name)
        on_current_stream(counted.kernels, name)


def each_unit_once(work, cell):
    """With more than one block for each row, no block computes the units of another."""
    case = work.case(3, 1, 400)
    # z, peepholes and old_cell; gates, new_cell, two gradients, and peepholes.
    for (name, counted), units in zip(count_passes(work, cell, case).items(), (6, 8), strict=True):
        what = f"{name}, {case}"
        few_reads(counted.kernels, units * case.B * case.S, what)
        stored_once(counted.kernels, case.B * case.S * case.dtype.itemsize, what)


def count_passes(work, cell, case):
    """What forward and backward of a case call and launch."""
    inputs = [tensor.requires_grad_() for tensor in given(case)]
    with work.counting() as forward:
        outputs = cell(*inputs)
    with work.counting() as back:
        torch.autograd.grad(outputs, inputs, case.gradients())
    return {"forward": forward, "backward": back}


def large_cells(cell, case):
    """Results and gradients of a large cell are finite, although an exponential of it overflows."""
    z, peepholes, old_cell = given(case)
    for size in (-1000, 1000):
        found = results(cell, (z, peepholes, torch.full_like(old_cell, size)), case.gradients())
        for name, one in found.items():
            require(
                bool(one.isfinite().all()),
                f"{name} is not finite where old_cell is {size} ({case}): an exponential overflows. std::tanh and "
                "the functions of csrc/lltm_math.h are right for large numbers, too",
            )


def compare(cell, case):
    """Compares forward and backward with the equations in float64."""
    inputs, gradients = given(case), case.gradients()
    precise = [tensor.double() for tensor in inputs]
    want = results(pointwise, precise, gradients)
    wrong = {words: results(partial(pointwise, **switch), precise, gradients) for words, switch in MISTAKES.items()}
    got = results(cell, inputs, gradients)
    for name in NAMES:
        suspects = {words: tensors[name] for words, tensors in wrong.items()}
        same(name, got[name], want[name], case, suspects=suspects)


def given(case):
    """z (B, 3, S), peepholes (2, S) and old_cell (B, S), in the layout of the case."""
    one = case.inputs()["old_cell"].detach()
    z = replace(case, B=3 * case.B, seed=case.seed + 2).inputs()["old_h"].detach()
    peepholes = replace(case, B=2, seed=case.seed + 3).inputs()["old_h"].detach()
    return z.unflatten(0, (case.B, 3)), peepholes, one


def results(cell, inputs, gradients):
    """Outputs and gradients of a cell by name."""
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    outputs = cell(*inputs)
    gradients = [gradient.to(output.dtype) for gradient, output in zip(gradients, outputs, strict=True)]
    d_z, d_peepholes, d_old_cell = torch.autograd.grad(outputs, inputs, gradients, allow_unused=True)
    return dict(zip(NAMES, (*(output.detach() for output in outputs), d_peepholes, d_z, d_old_cell), strict=True))


def pointwise(z, peepholes, old_cell, input_sees="old", output_sees="new"):
    """The equations of the README, with switches for typical mistakes."""
    z_i, z_o, z_g = z.unbind(dim=1)
    seen = {"old": old_cell, "old, detached": old_cell.detach(), "nothing": torch.zeros_like(old_cell)}
    input_gate = torch.sigmoid(z_i + peepholes[0] * seen[input_sees])
    new_cell = old_cell + F.elu(z_g) * input_gate
    seen |= {"new": new_cell, "new, detached": new_cell.detach()}
    output_gate = torch.sigmoid(z_o + peepholes[1] * seen[output_sees])
    return torch.tanh(new_cell) * output_gate, new_cell
