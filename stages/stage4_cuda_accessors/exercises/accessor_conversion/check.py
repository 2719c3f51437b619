import torch

from common.cell.case import input_gradients
from common.exercises.judge import SMALL, Failure, LearnerError, agree, cases
from common.exercises.judging.launches import ROWS, a_block_for_each_row, error_reported, large_batch

B, I, S = SMALL
EMPTY = "Without units, there is nothing to do either, and an empty grid is an error"
TALL = "A grid has at most 65,535 blocks in y, and the kernels loop over further rows: grid_for knows this limit"


def check(work):
    agree(work.cell(), [*cases(work), work.case(0, 5, 70)])
    work.by_kernels()
    height_of_the_grid(work)
    for name, arguments in calls(work, 0).items():
        without_error(f"{name}, B={B}, I={I}, S=0", EMPTY, getattr(work.load("_C"), name), *arguments)
    without_error(f"B={ROWS:,}, I=1, S=1", TALL, large_batch, work)
    for name, arguments in calls(work, S).items():
        error_reported(work, name, *arguments)


def without_error(case, advice, function, *arguments):
    """Calls a function. Raises `Failure` with this advice if the learner's code raises an error."""
    try:
        function(*arguments)
    except LearnerError as error:
        said = str(error).partition("\n")[0]
        raise Failure(f"{case}: {said}\n{advice}") from None


def height_of_the_grid(work):
    """Checks that the grid is as high as the batch; the kernels' loop over rows would hide any other height."""
    case = work.case(5, 3, 70)
    inputs = case.inputs()
    with work.counting() as counted:
        input_gradients(work.cell()(*inputs.values()), inputs, case.gradients())
    a_block_for_each_row(counted.kernels, case, "Which sizes does grid_for expect?")


def calls(work, S):
    """Arguments of forward and backward for cells of S units."""
    ones = torch.ones(1, device=work.device).new_ones
    state, weights = ones(B, S), ones(3 * S, S + I)
    return {
        "forward": (ones(B, I), weights, ones(3 * S), state, state),
        "backward": (state, state, weights, ones(B, S + I), ones(B, 3, S), state, [True] * 5),
    }
