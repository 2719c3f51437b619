"""Measures again what was disturbed, which the times of a baseline show: it is timed again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from .. import console
from ..results.rows import describe_drift

TRIES = 3  # for what was disturbed, and for the baseline's first time

T = TypeVar("T")
Repeat = Callable[[], dict[str, object]]  # times the baseline, and returns an entry of a record's "repeats"


def settle(repeat: Repeat) -> dict[str, object]:
    """Times the baseline until two times in a row agree, a few times at most: at first, a GPU's clock still rises."""
    found = [repeat()]
    for _ in range(TRIES):
        found.append(repeat())
        if not describe_drift({"repeats": found[-2:]}):
            break
    return found[-1]


def measure_while_quiet(
    measure: Callable[[], T], repeat: Repeat | None, before: Sequence[dict]
) -> tuple[T, list[dict]]:
    """Calls `measure`, and times the baseline once more if there is a `repeat`; returns the results of both.

    `before` are the baseline's times until now. If they are different afterwards, something else may have run for
    some seconds: `measure` is called again, a few times at most.
    """
    tries = TRIES if repeat and not describe_drift({"repeats": before}) else 1
    after: list[dict] = []
    while True:
        start = after  # of this try: if the baseline was disturbed then, the measurement may be, too
        measured = measure()
        after = [repeat()] if repeat else []
        tries -= 1
        drift = describe_drift({"repeats": [*before, *start, *after]})
        if not drift or not tries:
            return measured, after
        console.say(f"This is measured again: {drift}.")
