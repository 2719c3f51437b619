import torch

from common.exercises.judge import Failure, LearnerError, made_by, require, right_or_refused, same, unchanged

FUNCTIONS = ("Decorated", "OfIntermediates", "OfInputs", "OfOneInput", "OfTheResult")
ARGUMENTS = ("x", "w")
OUTCOMES = ("refused", "wrong")
# For each wrong prediction, what the call does.
CORRECTIONS = {
    "refused": "torch.autograd.grad(loss, {0}) returned a wrong number just now, without an error. Does the node "
    "that refuses lead to {0}?",
    "wrong": "torch.autograd.grad(loss, {0}) raised an error just now: the node that refuses leads to {0}. Through "
    "which tensor?",
}


def check(work):
    unchanged(work, "refusals.py", "Edit only answer.py")
    predicted(work)
    repaired(work)


def arguments(work):
    """x and w, which need gradients."""
    numbers = work.numbers()
    return [torch.randn(3, 4, generator=numbers, dtype=torch.float64).requires_grad_() for _ in ARGUMENTS]


def predicted(work):
    """Compares the predictions with what the calls do."""
    said = work.load("answer").predictions()
    for name in FUNCTIONS:
        for number, argument in enumerate(ARGUMENTS):
            word = said.get(name, {}).get(argument)
            what = f'predictions()["{name}"]["{argument}"] is {word!r}'
            require(word in OUTCOMES, f"{what}, expected one of {', '.join(OUTCOMES)}")
            require(word == outcome(work, name, number), f"{what}, but {CORRECTIONS[word].format(argument)}")


def outcome(work, name, number):
    """What the gradient for the argument of this number does, for a loss that contains the gradient for x."""
    function = getattr(work.load("refusals"), f"{name}.apply")
    function(*arguments(work))
    try:
        function.second_of_pair(0, number, False)
    except LearnerError:
        return "refused"
    return "wrong"


def repaired(work):
    """The first derivatives of Repaired are right, and no second derivative is silently wrong."""
    function = getattr(work.load("answer"), "Repaired.apply")
    x, w = arguments(work)
    try:
        y = function(x, w)
        made_by(work, "Repaired", "answer", "Repaired.apply", x, w)
        found = torch.autograd.grad(y, (x, w), torch.ones_like(y), allow_unused=True)
    except LearnerError as error:
        raise Failure(f"Repaired refuses the first derivatives, too: {error}") from None
    slope = 1 - torch.tanh(w * x).detach() ** 2
    for name, got, want in zip(ARGUMENTS, found, (slope * w.detach(), slope * x.detach()), strict=True):
        same(f"d_{name} of Repaired", got, want, "shape (3, 4), float64")
    hint = "Which saved tensor leads to both arguments?"
    right_or_refused(function, lambda x, w: torch.tanh(w * x), {"x": x, "w": w}, hint)
