"""The functions that `make check` calls. Do not change this file; edit missing.py."""

import contextlib

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


def keeps_handled(handled, namespace):
    """Whether `missing` leaves the list that it receives as it is."""
    table, as_before = ([named(name) for name in handled] for _ in range(2))
    missing(table, named(namespace))
    return table == as_before


def asked(function, *others):
    """What `asks` returns for a function."""
    return asks(named(function), *others)


def of_a_new_one(does_ask, raises):
    """What `asks` returns for a new function, which may call __torch_function__ and may raise an error of its own."""

    class OwnError(Exception):
        pass

    def function(probe):
        if does_ask:
            with contextlib.suppress(Exception):
                torch.relu(input=probe)
        if raises:
            raise OwnError("an error of the function itself")

    return asks(function)
