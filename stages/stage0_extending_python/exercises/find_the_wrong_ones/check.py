import random
from pathlib import Path

from common.exercises.judge import Failure, LearnerError, require, unchanged

WRONG = {
    "PositiveOnly": "where x is negative",
    "NegativeOnly": "where x is positive",
    "RowByRow": "where x is not contiguous",
    "SlopeKept": "in the second derivative",
    "Off": "by a ten-thousandth",
}
RIGHT = ("Sine", "Square")
# What is wrong with the functions of hidden.py.
HIDDEN = {
    "B": "where x is negative",
    "C": "where x is positive",
    "D": "where x is not contiguous",
    "E": "in the second derivative",
    "F": "by a ten-thousandth",
    "G": "in the second derivative, by a ten-thousandth",
    "H": "in the second derivative where x is negative",
    "I": "in the second derivative where x is not contiguous",
    "J": "in the second derivative where x is positive",
}
HIDDEN_RIGHT = {"A": "x ** 3", "K": "(x ** 3).cumsum(0), in which a result depends on several elements"}
BY_CHANCE = ("B", "C", "H", "J")  # a test with numbers of one random sign finds these in half of all runs
TIMES = 6


def check(work):
    unchanged(work, "suspects.py", "Edit only verdict.py")
    trial, chance = work.load("suspects").trial, random.Random(work.seed)
    said = {name: verdict(trial, name) for name in chance.sample([*RIGHT, *WRONG], len(RIGHT) + len(WRONG))}
    for name in RIGHT:
        require(said[name], f"{name} is right, but your test says that it is wrong")
    missed = [f"{name} is wrong {where}" for name, where in WRONG.items() if said[name]]
    require(not missed, "\n".join(["Your test says that these functions are right:", *missed]))
    hidden(work, chance)


def hidden(work, chance):
    """Runs the test on functions that it has not seen, in a random order."""
    trial = work.beside(Path(__file__).with_name("hidden.py")).trial
    names = [*HIDDEN_RIGHT, *HIDDEN, *BY_CHANCE * (TIMES - 1)]
    for name in chance.sample(names, len(names)):
        said = verdict(trial, name)
        if name in HIDDEN_RIGHT:
            require(said, f"Your test says that a right function, {HIDDEN_RIGHT[name]}, is wrong")
            continue
        require(
            not said,
            f"Your test says that x ** 3 with a derivative that is wrong {HIDDEN[name]} is right. (The check has "
            "such functions of its own.) If it finds the one in suspects.py, does it depend on random numbers, or on "
            "which function it gets?",
        )


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
