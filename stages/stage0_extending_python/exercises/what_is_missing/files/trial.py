"""What `make check` calls. Leave this file as it is: missing.py is yours."""

import torch
from torch.overrides import resolve_name

from .missing import asks, missing


def named(name):
    """What is called by a name such as torch.linalg.inv."""
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def lacking(handled, namespace):
    """The names of what is missing."""
    found = missing([named(name) for name in handled], named(namespace))
    return found and [resolve_name(function) or repr(function) for function in found]


def asked(function, *others):
    """Whether a function asks."""
    return asks(named(function), *others)


def of_a_new_one(does_ask):
    """Whether a new function is said to ask, which may ask indeed, and then raises an error of its own."""

    def function(probe):
        if does_ask:
            torch.relu(input=probe)
        raise ArithmeticError("however it ends")

    return asks(function)
