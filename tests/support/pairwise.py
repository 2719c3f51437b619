"""Parameter grids in which every pair of values occurs (pairwise testing), because most mistakes show in pairs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import pytest


def pairwise(*factors: Sequence[object]) -> list[tuple]:
    """Rows with one value of each factor, such that any two values of two factors occur together in at least one row.

    The rows are always the same for the same factors. Every value of every factor occurs.
    """
    if len(factors) == 1:
        return [(value,) for value in factors[0]]
    values = [range(len(factor)) for factor in factors]
    wanted = {pair for a, b in itertools.combinations(range(len(factors)), 2) for pair in pairs_of(a, b, values)}
    rows = []
    while wanted:
        row = dict(min(wanted))
        for factor in set(range(len(factors))) - set(row):
            row[factor] = max(values[factor], key=lambda value, f=factor: (len(new(row, f, value) & wanted), -value))
        wanted -= set(itertools.combinations(sorted(row.items()), 2))
        rows.append(tuple(factors[factor][row[factor]] for factor in sorted(row)))
    return rows


def pairs_of(a: int, b: int, values: Sequence[Iterable[int]]) -> list[tuple]:
    """Every pair of a value of one factor and a value of another."""
    return [((a, x), (b, y)) for x in values[a] for y in values[b]]


def new(row: dict[int, int], factor: int, value: int) -> set[tuple]:
    """The new pairs that a value adds to a row."""
    return {tuple(sorted((known, (factor, value)))) for known in row.items()}


def on_targets(targets: Sequence, *factors: Sequence[object], looped: Sequence[object]) -> list:
    """Parameters of a test: a target, a value of each factor, and the values of `looped` to loop over.

    On the host and on a GPU these are all combinations, each with all of `looped`. On the emulator, which is slow,
    they are rows in which every pair of values occurs, each with one of `looped`.
    """
    everything = [(*row, tuple(looped)) for row in itertools.product(*factors)]
    pairs = [(*row, (last,)) for *row, last in pairwise(*factors, looped)]
    return [
        pytest.param(
            target.values[0], *row, marks=target.marks, id="-".join(map(named, (target.values[0], *row[:-1])))
        )
        for target in targets
        for row in (pairs if target.values[0] == "emulator" else everything)
    ]


def named(value: object) -> str:
    """A value as it appears in a test's name."""
    return str(value).removeprefix("torch.")
