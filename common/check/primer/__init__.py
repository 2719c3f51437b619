"""`make stage-0`: every check of the primer, one line each. Each part lists its own checks in `CHECKS`."""

from __future__ import annotations

import time
from types import ModuleType

import torch

from ...cell.case import fresh_seed
from ...console import say
from ..subject import Result
from . import autograd, conv_batchnorm, overrides
from .checks import Check

PARTS: tuple[ModuleType, ...] = (autograd, overrides, conv_batchnorm)


def check_primer(seed: int | None = None) -> list[Result]:
    """Runs every check and prints its result; without a seed, with new random numbers."""
    seed = fresh_seed() if seed is None else seed
    results = []
    for part in PARTS:
        say(f"  {part.__doc__.partition('.')[0]}")
        results += [_row(one, seed) for one in part.CHECKS]
    return results


def _row(one: Check, seed: int) -> Result:
    """Runs one check, prints its line, and returns its row for the report."""
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
    return Result(0, "host", "cpu", "any", one.what, outcome, message, seconds)
