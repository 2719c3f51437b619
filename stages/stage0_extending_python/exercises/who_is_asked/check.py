from common.exercises.judge import require

WHY = {
    "left_right": "neither is a subclass of the other, so the one further left comes first",
    "derived": "a subclass comes before its base, wherever it stands",
    "between": "a subclass is moved to just before its base, no further, and each type is asked once",
    "silent": "an answer ends the asking, and None is one",
    "result": "a function without return has answered None",
    "kind": "the most derived type wins, and a result of the subclass stays one",
    "siblings": "each of the two answers for itself and its bases only",
}


def check(work):
    answers = work.answers()
    with work.ours(work.exercise.folder / "files") as ours:
        found = measured(ours.load("who"))
    for name, why in WHY.items():
        said = " ".join(answers[name].replace(",", " ").split())
        require(said.lower() == found[name].lower(), f"{name} = {said}: not what torch did just now: {why}")


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
