import itertools

import torch
from torch.overrides import get_overridable_functions, resolve_name

from common.exercises.judge import Failure, require, unchanged

TABLES = [
    ("torch.linalg", ["torch.linalg.inv", "torch.linalg.det"]),
    ("torch", ["torch.mean", "torch.add", "torch.Tensor.matmul"]),
    ("torch.Tensor", ["torch.add", "torch.Tensor.matmul", "torch.Tensor.__rsub__"]),
    ("torch.Tensor.T", ["torch.Tensor.T.__get__"]),  # an attribute; its __get__ is a new object at each access
    ("torch.fft", []),
    ("torch.linalg", []),  # again: torch's own list must be as it was
]
ASKS = (
    ("torch.mean", True),
    ("torch.relu", True),
    ("torch.nn.functional.relu", True),
    ("torch.tensor", False),
    ("torch.is_tensor", False),
    ("torch.rand_like", True),
    ("torch.numel", True),
    ("torch.add", False),  # without its second argument: an error comes first
    ("torch.add", True, 1),
)


def check(work):
    unchanged(work, "trial.py", "Edit only missing.py")
    trial = work.load("trial")
    for namespace, handled in TABLES:
        call = f"missing({handled}, {namespace})"
        compare(trial.lacking(handled, namespace), wanted(handled, namespace), call)
        require(
            trial.keeps_handled(handled, namespace),
            f"{call} changes the list `handled`, which belongs to the caller: a second call with the same list would "
            "give another result",
        )
    for function, want, *others in ASKS:
        got, call = trial.asked(function, *others), ", ".join([function, *map(str, others)])
        require(
            got is want,
            f"asks({call}) is {got!r:.40}, but it {'calls' if want else 'does not call'} __torch_function__",
        )
    for want, raises in itertools.product((False, True), repeat=2):
        got, what = trial.of_a_new_one(want, raises), "calls" if want else "does not call"
        then = "raises an error of its own" if raises else "raises no error"
        require(got is want, f"asks returns {got!r:.40} for a new function that {what} __torch_function__ and {then}")


def wanted(handled, namespace):
    """The names of the missing functions."""
    functions = get_overridable_functions()[named(namespace)]
    table = {named(name) for name in handled}
    return {resolve_name(function) or repr(function) for function in functions if function not in table}


def named(name):
    """The object that has a name such as torch.linalg.inv."""
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def compare(got, want, call):
    """Raises `Failure` for names that are superfluous, missing or repeated."""
    require(
        isinstance(got, list) and all(isinstance(one, str) for one in got),
        f"{call} gives {got!r:.60}, expected a list of functions",
    )
    for names, words in ((set(got) - want, "should not be in it"), (want - set(got), "are not in it")):
        if names:
            some = ", ".join(sorted(names)[:3])
            raise Failure(f"{call} returns a wrong list: {len(names)} functions {words}, such as {some}")
    require(len(got) == len(want), f"{call} returns {len(got) - len(want)} functions twice")
