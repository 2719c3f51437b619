import torch

from common.exercises.judge import SMALL, agree, cases, require
from common.exercises.judging.launches import large_batch, whole_warps


def check(work):
    agree(work.cell(), cases(work), gradients=False)
    agree(work.cell(), cases(work)[:2])
    not_a_number(work)
    large_cells(work)
    work.by_kernels()
    whole_warps(work, "forward_kernel")
    large_batch(work)


def not_a_number(work):
    """NaN in an input shows in the results: a user looks for it there."""
    case = work.case(*SMALL)
    for gate, name in enumerate(("input gate", "output gate", "candidate cell")):
        inputs = case.inputs()
        inputs["bias"].data[gate * case.S] = torch.nan
        new_h, _ = work.cell()(*inputs.values())
        require(
            bool(new_h[:, 0].isnan().all()),
            f"the {name} of the first unit is NaN, but new_h is not: something hides it ({case})",
        )


def large_cells(work):
    """tanh of a large cell is 1 or -1, although an exponential of it overflows."""
    case = work.case(*SMALL)
    for cell in (-1000, 1000):
        inputs = case.inputs()
        inputs["old_cell"].data.fill_(cell)
        new_h, _ = work.cell()(*inputs.values())
        require(
            bool(new_h.isfinite().all()),
            f"new_h is not finite where old_cell is {cell} ({case}): an exponential overflows, use std::tanh",
        )
