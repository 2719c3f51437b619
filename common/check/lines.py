"""Checks that print a line each: those of the stages that are not a cell or a sequence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from ..console import say
from .subject import Result

GENERATOR = threading.Lock()  # torch's generator is the same for all threads


class Check(NamedTuple):
    """One line of the output.

    `run` returns a summary of what was checked, such as "gradcheck of 5 arguments", and raises AssertionError with a
    message if something is wrong. It uses torch's generator, which is seeded before each check.
    """

    what: str
    run: Callable[[], str]


def run_check(stage: int, one: Check, seed: int) -> Result:
    """Runs one check of a stage, prints its line, and returns its row for the report."""
    with GENERATOR:
        torch.manual_seed(seed)
        outcome, seen, start = "passed", "", time.perf_counter()
        try:
            seen = one.run()
        except AssertionError as error:
            outcome, seen = "failed", str(error)
        except Exception as error:  # any exception counts as a failure of the stage
            outcome, seen = "failed", f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
    shown = seen if outcome == "passed" else f"FAILED: {seen} (seed {seed})"
    say(f"    {one.what} {'.' * max(3, 44 - len(one.what))} {shown} ({seconds:.1f} s)")
    message = "" if outcome == "passed" else f"{seen} (seed {seed})"
    return Result(stage, "host", "cpu", "any", one.what, outcome, message, seconds)
