"""How much of torch a type covers: the functions that can be overridden, called with the type and with a tensor."""

import inspect
import warnings
from types import ModuleType

import torch
from torch.overrides import get_overridable_functions, get_testing_overrides
from torch.utils._pytree import tree_leaves


def overridable():
    """{namespace: functions} of all that can be overridden, each once: where it is listed first."""
    found, seen = {}, set()
    for namespace, functions in get_overridable_functions().items():
        is_place = isinstance(namespace, (ModuleType, type))  # the others are attributes, such as Tensor.shape
        name = namespace.__name__ if is_place else "attributes of Tensor"
        found.setdefault(name, []).extend(one for one in dict.fromkeys(functions) if one not in seen)
        seen.update(functions)
    return found


def coverage(matrix, make):
    """{namespace: (covered, all)}: functions that give `make()`, which stands for the matrix, the matrix's result.

    They are those with one argument that accept the matrix. A function whose result is not numbers only, or not
    the same twice, is left out.
    """
    counts = {}
    for name, functions in overridable().items():
        wanted = {function: numbers(function, matrix.clone()) for function in functions if takes_one(function)}
        wanted = {f: want for f, want in wanted.items() if want and same(want, numbers(f, matrix.clone()))}
        if wanted:
            covered = sum(same(want, numbers(function, make())) for function, want in wanted.items())
            counts[name] = covered, len(wanted)
    return counts


def takes_one(function):
    """Whether one argument is enough: torch keeps a lambda with the parameters of each function for its own tests."""
    dummy = get_testing_overrides().get(function)
    if dummy is None or function is torch.empty_like:  # whose result is whatever the memory held
        return False
    parameters = inspect.signature(dummy).parameters.values()
    return sum(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in parameters) == 1


def numbers(function, argument):
    """The tensors and numbers that a call returns; an empty list where it fails or returns anything else."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(0)  # of which dropout makes the same each time
        try:
            found = tree_leaves(function(argument))
        except Exception:  # whatever a function says to an argument that it does not take
            return []
    return found if all(is_plain(one) for one in found) else []


def is_plain(one):
    """Whether this is a number, or an ordinary tensor of numbers."""
    return type(one) in (bool, int, float) or (isinstance(one, torch.Tensor) and one.layout == torch.strided)


def same(got, want):
    """Whether two lists of tensors and numbers are equal, up to rounding."""
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
    except (AssertionError, RuntimeError, TypeError):  # the last two for what cannot be compared, such as True and 1
        return False
    return True
