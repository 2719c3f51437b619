"""What a record of stage 9's scaling says: the ideal time of a step, and the communication that computing hides.

A trace is a sequence of ("compute" or "communication", start, end): what the GPU of the first process did in a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

Interval = tuple[float, float]
TRACE_KINDS = ("compute", "communication")


def ideal_step(row: dict, rows: Sequence[dict]) -> float:
    """The time of a row's step if n processes did the work of one in 1/n of its time, in the unit of the record."""
    (alone,) = [one for one in rows if one["scaling"] == row["scaling"] and one["processes"] == 1]
    return alone["step"] * row["batch"] / alone["batch"] / row["processes"]


def measure_communication(trace: Sequence[tuple[str, float, float]]) -> dict[str, float]:
    """How long gradients travelled in a step, and how much of this time nothing was computed meanwhile."""
    compute, communication = (merge(select(trace, kind)) for kind in TRACE_KINDS)
    total = length(communication)
    return {
        "communication": round(total, 1),
        "not_hidden": round(total - length(intersect(communication, compute)), 1),
    }


def select(trace: Iterable[tuple[str, float, float]], kind: str) -> list[Interval]:
    """The intervals of one kind."""
    return [(start, end) for name, start, end in trace if name == kind]


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of some intervals: disjoint, in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def intersect(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """What two unions of disjoint intervals have in common, in order."""
    both = ((max(a[0], b[0]), min(a[1], b[1])) for a, b in product(some, others))
    return [(start, end) for start, end in both if start < end]


def length(intervals: Iterable[Interval]) -> float:
    """The sum of the lengths."""
    return sum(end - start for start, end in intervals)
