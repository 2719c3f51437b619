import re

import torch

from common.exercises.judge import Failure, require, unchanged

BATCHES_AND_LENGTHS = ((5, 7), (5, 4), (1, 7), (5, 1), (1, 1), (2, 3), (7, 7), (64, 2), (2, 1024))
CONSTANT = (
    "torch.export takes a size of the example for a constant unless dynamic_shapes names it, and a size of 0 or 1 "
    "even then: with Dim it raises an error, with Dim.AUTO it does not"
)


def check(work):
    for file in ("classifier.py", "trial.py"):
        unchanged(work, file, "Edit only export.py")
    numbers = work.numbers()

    def random(*shape):
        return torch.randn(*shape, generator=numbers)

    I, S, C = 6, 5, 4
    for model, training in (("the first model", False), ("another model of the same sizes, in training mode", True)):
        parameters = {"features.weight": random(S, I), "features.bias": random(S),
                      "head.weight": random(C, 2 * S), "head.bias": random(C)}  # fmt: skip
        check_program(work, (I, S, C), parameters, random, model, training)


def check_program(work, sizes, parameters, random, model, training):
    """Raises `Failure` unless the exported program gives the results of the model."""
    I, S, _ = sizes
    calls = [(random(B, T, I), random(B, S), random(B, S)) for B, T in BATCHES_AND_LENGTHS]
    results = work.load("trial").trial(sizes, parameters, calls, training)
    if isinstance(results, str):
        raise Failure(f"export_classifier: {results}" + explain_error(results))
    for (B, T), arguments, found in zip(BATCHES_AND_LENGTHS, calls, results, strict=True):
        where = f"{B} sequences with {T} steps, {model}"
        if isinstance(found, str):
            raise Failure(f"the program refuses {where}: {found}\n{explain_refusal(found)}")
        compare(found, parameters, arguments, where)


def explain_error(message):
    """The likely cause of an error of torch.export, on a line of its own; empty if the message says it."""
    if "constant (0)" in message or "constant (1)" in message:
        return f"\n{CONSTANT}"
    if "constant" in message:
        return "\nthis size must equal a constant: is the batch of all three arguments dynamic, and nothing else too?"
    return ""


def explain_refusal(guard):
    """The likely cause of a failed guard, such as `steps.size()[0] == 1`."""
    if re.search(r"== \d+$", guard):
        return CONSTANT
    return "which sizes does dynamic_shapes allow, and which of them are given the same name?"


def compare(found, parameters, arguments, where):
    """Raises `Failure` unless the results of the program are those of the model."""
    steps, total, peak = arguments
    want = classify(parameters, steps, total, peak)
    suspects = {
        "both states start from total": classify(parameters, steps, total, total),
        "both states start from peak": classify(parameters, steps, peak, peak),
        "total and peak are exchanged": classify(parameters, steps, peak, total),
    }
    require(len(found) == 3, f"the program returns {len(found)} results, expected 3")
    if are_close(found, want):
        return
    cause = next((cause for cause, suspect in suspects.items() if are_close(found, suspect)), None)
    names = ("scores", "total", "peak")
    wrong = [name for name, *pair in zip(names, found, want, strict=True) if not are_close(*[[one] for one in pair])]
    note = f"\n{cause}: does the example contain one tensor twice?" if cause else ""
    raise Failure(f"{', '.join(wrong)} of the program differ from the model's ({where}){note}")


def classify(parameters, steps, total, peak):
    """What the model computes, in float64."""
    numbers = {name: value.double() for name, value in parameters.items()}
    features = (steps.double() @ numbers["features.weight"].T + numbers["features.bias"]).relu()
    total, peak = total + features.sum(1), torch.maximum(peak.double(), features.amax(1))
    return torch.cat([total, peak], 1) @ numbers["head.weight"].T + numbers["head.bias"], total, peak


def are_close(found, want):
    """Whether all tensors agree; NaN never does."""
    return all(
        one.shape == other.shape and torch.allclose(one.double(), other, rtol=1e-4, atol=1e-4)
        for one, other in zip(found, want, strict=True)
    )
