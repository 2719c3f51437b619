import torch

from common.exercises.judge import Failure, LearnerError, agree, cases, same, wide_indices
from common.exercises.judging.launches import ROWS, large_batch, whole_warps

MISSING = {"h only": ("new_cell", "grad_cell"), "cell only": ("new_h", "grad_h")}


def check(work):
    cell, each = work.cell(), cases(work)
    agree(cell, [case for case in each if case.grads not in MISSING])
    for case in each:
        if case.grads in MISSING:
            with_a_null_pointer(cell, case)
    with_an_infinite_candidate(work)
    work.by_kernels()
    whole_warps(work, "backward_kernel")
    large_batch(work)
    for grads in MISSING:
        with_a_null_pointer(cell, work.case(ROWS, 1, 1, grads=grads))
    wide_indices(work.code("csrc/lltm_kernel.cu"), "backward_kernel", "row", "state_size")


def with_an_infinite_candidate(work):
    """An infinite candidate cell has the derivative 1: a product with a mask would be 0 * infinity."""
    half = torch.full((1, 33), 0.5, device=work.device)
    gates, S = torch.cat([half, half, half / 0], 1), half.size(1)
    weights, X = half.new_zeros(3 * S, S + 1), half.new_zeros(1, S + 1)
    _, _, d_bias, *_ = work.load("_C").backward(None, half, weights, X, gates, half, [True] * 5)
    want = torch.full((S,), 0.25)
    same("d_z of the candidate cell", d_bias.chunk(3)[2], want, "an infinite candidate cell: its derivative is 1")


def with_a_null_pointer(cell, case):
    """One result has no gradient, so the kernel gets a null pointer."""
    try:
        agree(cell, [case])
    except (Failure, LearnerError) as error:
        result, pointer = MISSING[case.grads]
        raise Failure(
            f"{str(error).strip()}\nHere {result} has no gradient, so {pointer} is a null pointer. Treat it as "
            "zeros: compare the pointer with nullptr before each read, do not change it, and compute everything else "
            "as usual"
        ) from None
