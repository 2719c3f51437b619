"""Measures how much of torch a type covers: calls overridable functions with the type and with a tensor."""

import inspect
import warnings
from types import ModuleType

import torch
from torch.overrides import get_overridable_functions, get_testing_overrides
from torch.utils._pytree import tree_leaves


def overridable():
    """{namespace: functions} of all overridable functions, each once: in the namespace that lists it first."""
    found, seen = {}, set()
    for namespace, functions in get_overridable_functions().items():
        is_place = isinstance(namespace, (ModuleType, type))  # the others are attributes, such as Tensor.shape
        name = namespace.__name__ if is_place else "attributes of Tensor"
        found.setdefault(name, []).extend(one for one in dict.fromkeys(functions) if one not in seen)
        seen.update(functions)
    return found


def coverage(matrix, make):
    """{namespace: (covered, all)}: how many functions give the same result for `make()` as for the matrix.

    `make()` returns an object that represents the matrix. Only functions that can be called with the matrix as their
    one argument count. A function is left out if its result contains anything but numbers, or differs between two
    calls.
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
    """Whether one argument is enough. For its own tests, torch has a lambda with the parameters of each function."""
    dummy = get_testing_overrides().get(function)
    if dummy is None or function is torch.empty_like:  # the result of empty_like is uninitialised memory
        return False
    parameters = inspect.signature(dummy).parameters.values()
    return sum(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in parameters) == 1


def numbers(function, argument):
    """The tensors and numbers that a call returns; an empty list if it fails or returns anything else."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.default_generator.manual_seed(0)  # so that dropout gives the same result each time
        try:
            found = tree_leaves(function(argument))
        except Exception:  # functions reject arguments with many kinds of errors
            return []
    return found if all(is_plain(one) for one in found) else []


def is_plain(one):
    """Whether this is a number, or an ordinary tensor of numbers."""
    return type(one) in (bool, int, float) or (isinstance(one, torch.Tensor) and one.layout == torch.strided)


def same(got, want):
    """Whether two lists of tensors and numbers are equal, up to rounding."""
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
    except (AssertionError, RuntimeError, TypeError):  # the last two if values cannot be compared, such as True and 1
        return False
    return True
