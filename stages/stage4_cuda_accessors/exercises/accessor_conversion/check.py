import torch

from common.exercises.judge import SMALL, Failure, LearnerError, agree, cases
from common.exercises.judging.launches import error_reported

B, I, S = SMALL


def check(work):
    agree(work.cell(), [*cases(work), work.case(0, 5, 70)])
    work.by_kernels()
    for name, arguments in calls(work, 0).items():
        try:
            getattr(work.load("_C"), name)(*arguments)
        except LearnerError as error:
            said = str(error).partition("\n")[0]
            raise Failure(
                f"{name}, B={B}, I={I}, S=0: {said}\nWithout units, there is nothing to do either, and an empty grid "
                "is an error"
            ) from None
    for name, arguments in calls(work, S).items():
        error_reported(work, name, *arguments)


def calls(work, S):
    """Arguments of forward and backward for cells of S units."""
    ones = torch.ones(1, device=work.device).new_ones
    state, weights = ones(B, S), ones(3 * S, S + I)
    return {
        "forward": (ones(B, I), weights, ones(3 * S), state, state),
        "backward": (state, state, weights, ones(B, S + I), ones(B, 3, S), state, [True] * 5),
    }
