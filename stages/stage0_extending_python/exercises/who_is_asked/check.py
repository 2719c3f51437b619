from common.exercises.judge import require

WHY = {
    "left_right": "neither is a subclass of the other, so the one further left comes first",
    "derived": "a subclass comes before its base class, wherever it is in the list",
    "between": "a subclass moves to just before its base class and no further, and each type is asked only once",
    "silent": "torch stops at the first result that is not NotImplemented, and None is such a result",
    "result": "a function without a return statement returns None",
    "kind": "the most derived type wins, and operations on a subclass return that subclass",
    "siblings": "each of the two handles only its own type and its base classes",
}


def check(work):
    answers = work.answers()
    with work.ours(work.exercise.folder / "files") as ours:
        found = measured(ours.load("who"))
    for name, why in WHY.items():
        said = " ".join(answers[name].replace(",", " ").split())
        require(said.lower() == found[name].lower(), f"{name} = {said}: torch did something else just now: {why}")


def measured(who):
    """The answers, by the names of the questions."""
    asked, result = who.order("Base", "Silent", "Answers")
    return {
        "left_right": who.order("Other", "Base")[0],
        "derived": who.order("Base", "Other", "Derived")[0],
        "between": who.order("Other", "Base", "Derived", "Other")[0],
        "silent": asked,
        "result": result,
        "kind": who.kind("Tensor", "Image", "Grey"),
        "siblings": who.kind("Grey", "Colour"),
    }
