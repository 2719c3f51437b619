"""A command of the workbook: its name for make, what it does, the function that runs it, and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

Argument = tuple[tuple[str, ...], dict[str, Any]]


def argument(*names: str, **options: Any) -> Argument:
    """An argument, as argparse's `add_argument` takes it; its `dest` is the function's parameter."""
    return names, options


@dataclass(frozen=True)
class Command:
    """One command. `function` is "module:name" in common/, imported only when the command runs.

    A command without a function exists only in the Makefile, which calls a standard tool. `make` is what to type
    after `make` if that differs from the name. `builds`: it builds extensions, so the compiler is checked first.
    `variables`: by the first name of an argument, the variable of make that gives it, such as {"--out": "RECORD"}.
    (It has none if the Makefile passes the variables on by a rule of the command's own.)
    """

    name: str
    help: str
    function: str = ""
    arguments: tuple[Argument, ...] = ()
    make: str = ""
    builds: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


def find_function(name: str) -> Callable:
    """The function "module:name" in common/, which is imported now."""
    module, _, function = name.partition(":")
    return getattr(import_module(f"common.{module}"), function)
