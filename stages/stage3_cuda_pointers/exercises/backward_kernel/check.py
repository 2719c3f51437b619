from common.exercises.judge import Failure, LearnerError, agree, cases, wide_indices
from common.exercises.judging.launches import ROWS, large_batch, whole_warps

MISSING = {"h only": ("new_cell", "grad_cell"), "cell only": ("new_h", "grad_h")}


def check(work):
    cell, each = work.cell(), cases(work)
    agree(cell, [case for case in each if case.grads not in MISSING])
    for case in each:
        if case.grads in MISSING:
            with_a_null_pointer(cell, case)
    work.by_kernels()
    whole_warps(work, "backward_kernel")
    large_batch(work)
    for grads in MISSING:
        with_a_null_pointer(cell, work.case(ROWS, 1, 1, grads=grads))
    wide_indices(work.code("csrc/lltm_kernel.cu"), "row", "state_size")


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
