import random

from common.exercises.judge import Failure, LearnerError, require, unchanged

WRONG = {
    "PositiveOnly": "where x is negative",
    "NegativeOnly": "where x is positive",
    "RowByRow": "where x is not contiguous",
    "SlopeKept": "in the second derivative",
    "Off": "by a ten-thousandth",
}
RIGHT = ("Sine", "Square")


def check(work):
    unchanged(work, "suspects.py", "Edit only verdict.py")
    trial, chance = work.load("suspects").trial, random.Random(work.seed)
    said = {name: verdict(trial, name) for name in chance.sample([*RIGHT, *WRONG], len(RIGHT) + len(WRONG))}
    for name in RIGHT:
        require(said[name], f"{name} is right, but your test says that it is wrong")
    missed = [f"{name} is wrong {where}" for name, where in WRONG.items() if said[name]]
    require(not missed, "\n".join(["Your test says that these functions are right:", *missed]))


def verdict(trial, name):
    """What the learner's test says about one function."""
    try:
        said = trial(name)
    except LearnerError as error:
        if error.kind != "GradcheckError":
            raise
        raise Failure(
            f"is_right raises a GradcheckError for {name}: with raise_exception=False, gradcheck returns False"
        ) from None
    require(isinstance(said, bool), f"is_right returns {said!r:.60} for {name}, expected True or False")
    return said
