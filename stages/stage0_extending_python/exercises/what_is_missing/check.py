import torch
from torch.overrides import get_overridable_functions, resolve_name

from common.exercises.judge import Failure, require, unchanged

TABLES = {
    "torch.linalg": ["torch.linalg.inv", "torch.linalg.det"],
    "torch": ["torch.mean", "torch.add", "torch.Tensor.matmul"],
    "torch.Tensor": ["torch.add", "torch.Tensor.matmul", "torch.Tensor.__rsub__"],
    "torch.fft": [],
}
ASKS = {
    "torch.mean": (True,),
    "torch.add": (True, 1),
    "torch.relu": (True,),
    "torch.nn.functional.relu": (True,),
    "torch.tensor": (False,),
    "torch.is_tensor": (False,),
    "torch.rand_like": (True,),
    "torch.numel": (True,),
}


def check(work):
    unchanged(work, "trial.py", "It is what is tried; missing.py is yours")
    trial = work.load("trial")
    for namespace, handled in TABLES.items():
        compare(trial.lacking(handled, namespace), wanted(handled, namespace), f"missing({handled}, {namespace})")
    for function, (want, *others) in ASKS.items():
        got = trial.asked(function, *others)
        require(
            got is want,
            f"asks({function}) is {got!r:.40}, but a call of it {'asks the type' if want else 'asks no type'}",
        )
    for want in (False, True):
        got, what = trial.of_a_new_one(want), "asks" if want else "fails without asking"
        require(got is want, f"asks is {got!r:.40} of a new function that {what}")


def wanted(handled, namespace):
    """The names of what is missing."""
    functions = get_overridable_functions()[named(namespace)]
    table = {named(name) for name in handled}
    return {resolve_name(function) or repr(function) for function in functions if function not in table}


def named(name):
    """What is called by a name such as torch.linalg.inv."""
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def compare(got, want, call):
    """Raises `Failure` for names too many, too few, or twice."""
    require(
        isinstance(got, list) and all(isinstance(one, str) for one in got),
        f"{call} gives {got!r:.60}, expected a list of functions",
    )
    for names, words in ((set(got) - want, "should not be there"), (want - set(got), "should be there")):
        if names:
            some = ", ".join(sorted(names)[:3])
            raise Failure(f"{call}: {len(names)} of its functions {words}, such as {some}")
    require(len(got) == len(want), f"{call} has {len(got) - len(want)} functions twice")
