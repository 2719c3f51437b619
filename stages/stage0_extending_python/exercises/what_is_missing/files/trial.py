"""The functions that `make check` calls. Do not change this file; edit missing.py."""

import torch
from torch.overrides import resolve_name

from .missing import asks, missing


def named(name):
    """The object that has a name such as torch.linalg.inv."""
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def lacking(handled, namespace):
    """The names of the missing functions."""
    found = missing([named(name) for name in handled], named(namespace))
    return found and [resolve_name(function) or repr(function) for function in found]


def asked(function, *others):
    """What `asks` returns for a function."""
    return asks(named(function), *others)


def of_a_new_one(does_ask):
    """What `asks` returns for a new function, which may call __torch_function__ and then raises its own error."""

    def function(probe):
        if does_ask:
            torch.relu(input=probe)
        raise ArithmeticError("an error of the function itself")

    return asks(function)
