import torch

from common.exercises.judge import (
    SMALL,
    LearnerError,
    agree,
    cases,
    derived_by_hand,
    no_silent_second_derivatives,
    require,
)
from common.exercises.judging.repeats import backward_twice

EMPTY = ((3, 0, 7), (0, 5, 7))  # no inputs, no rows
SIZE = dict(zip(("rows", "inputs", "units"), SMALL, strict=True))
CONNECTED = (
    "Leave the refusal as it was in the starter: backward calls LLTMBackward.apply with all saved tensors. One of "
    "them, new_cell, is a result of LLTMFunction, and leads to every argument"
)
LARGER = {"rows": 7, "inputs": 9, "units": 71}


def check(work):
    agree(work.cell("by_hand"), cases(work))
    agree(work.cell("by_hand"), [work.case(*size, dtype=torch.float64) for size in EMPTY])
    backward_twice(work, work.cell("by_hand"))
    try:
        without_loops(work)
    except LearnerError as error:
        by_autograd = "torch.func" in str(error) and "saved tensor hooks" in str(error)
        require(not by_autograd, "backward calls torch.func, which is autograd. Write the derivatives yourself")
        raise
    derived_by_hand(work, "by_hand", "lltm", *work.case(*SMALL).inputs().values())
    with_an_infinite_candidate(work)
    no_silent_second_derivatives(work, work.cell("by_hand"), CONNECTED)


def without_loops(work):
    """Raises `Failure` if backward calls more operations for more rows, inputs or units."""
    few = operations(work, **SIZE)
    for what, more in LARGER.items():
        many = operations(work, **SIZE | {what: more})
        require(
            few == many,
            f"backward calls {few} operations for {SIZE[what]} {what} and {many} for {more}: it loops over the "
            f"{what}. A product of matrices, or a sum over a dimension, needs no loop",
        )


def operations(work, rows, inputs, units):
    """How many operations a backward of these sizes calls."""
    case, cell = work.case(rows, inputs, units), work.cell("by_hand")
    arguments = list(case.inputs().values())
    results = cell(*arguments)
    with work.counting() as counted:
        torch.autograd.grad(results, arguments, case.gradients())
    return sum(counted.calls.values())


def with_an_infinite_candidate(work):
    """elu has the derivative 1 there, but a product with a mask is 0 * infinity."""
    case = work.case(1, 5, 33, dtype=torch.float64)
    inputs = case.inputs()
    inputs["weights"].data.zero_()
    inputs["bias"].data.zero_()[2 * case.S :] = torch.inf
    _, new_cell = work.cell("by_hand")(*inputs.values())
    (d_bias,) = torch.autograd.grad(new_cell, inputs["bias"], torch.ones_like(new_cell))
    found = d_bias[-1].item()
    require(
        abs(found - 0.5) < 1e-9,
        f"where the candidate cell is infinite, its part of d_bias is {found:.4g}, expected 0.5: the derivative of "
        "elu is 1 there. A product with a mask computes 0 times infinity, which is NaN",
    )
