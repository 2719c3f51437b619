import torch

from common.exercises.judge import SMALL, LearnerError, agree, cases, derived_by_hand, require
from common.exercises.judging.repeats import backward_twice

EMPTY = ((3, 0, 7), (0, 5, 7))  # no inputs, no rows


def check(work):
    agree(work.cell("by_hand"), cases(work))
    agree(work.cell("by_hand"), [work.case(*size, dtype=torch.float64) for size in EMPTY])
    backward_twice(work, work.cell("by_hand"))
    try:
        for_all_rows(work)
    except LearnerError as error:
        by_autograd = "torch.func" in str(error) and "saved tensor hooks" in str(error)
        require(not by_autograd, "backward calls torch.func, which is autograd. Write the derivatives yourself")
        raise
    derived_by_hand(work, "by_hand", "lltm", *work.case(*SMALL).inputs().values())


def for_all_rows(work):
    """Raises `Failure` if backward calls more operations for more rows."""
    calls = []
    for B in (3, 7):
        case, cell = work.case(B, 5, 70), work.cell("by_hand")
        inputs = list(case.inputs().values())
        results = cell(*inputs)
        with work.counting() as counted:
            torch.autograd.grad(results, inputs, case.gradients())
        calls.append(sum(counted.calls.values()))
    require(
        calls[0] == calls[1],
        f"backward calls {calls[0]} operations for 3 rows and {calls[1]} for 7: it loops over the rows. A product of "
        "matrices, or a sum over a dimension, needs no loop",
    )
