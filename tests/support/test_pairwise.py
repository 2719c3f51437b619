"""Grids in which every pair of values occurs."""

from __future__ import annotations

import itertools

import pytest

from support.pairwise import on_targets, pairwise

FACTORS = [
    [["a", "b"]],
    [["a", "b"], [1, 2, 3]],
    [["a", "b"], [1, 2, 3], [True, False]],
    [range(4), [1, 3, 4, 5, 16, 17], [(0, 33), (1, 32), (3, 64), (5, 65), (33, 31), (130, 16)], range(4)],
    [["alone"], ["of", "two"], ["alone"]],
    [[0, 0], [1, 2]],  # equal values are two values
]


@pytest.mark.parametrize("factors", FACTORS)
def test_every_pair_occurs(factors):
    rows = pairwise(*factors)
    for a, b in itertools.combinations(range(len(factors)), 2):
        assert {(row[a], row[b]) for row in rows} == set(itertools.product(factors[a], factors[b]))
    for column, factor in zip(zip(*rows, strict=True), factors, strict=True):
        assert set(column) == set(factor)


def test_the_rows_are_few_and_always_the_same():
    rows = pairwise(*FACTORS[3])
    assert rows == pairwise(*FACTORS[3])
    assert 36 <= len(rows) <= 45  # of 576


def test_the_emulator_gets_pairs_and_others_everything():
    targets = [pytest.param("host"), pytest.param("emulator", marks=pytest.mark.needs("g++"))]
    params = on_targets(targets, [1, 2], ["x", "y"], looped=("all", "none"))
    values = [param.values for param in params]
    host = [value for value in values if value[0] == "host"]
    assert host == [("host", n, letter, ("all", "none")) for n in (1, 2) for letter in "xy"]
    emulator = [value for value in values if value[0] == "emulator"]
    assert {(n, letter) for _, n, letter, _ in emulator} == set(itertools.product((1, 2), "xy"))
    assert {(n, *last) for _, n, _, last in emulator} == set(itertools.product((1, 2), ("all", "none")))
    assert params[-1].id.startswith("emulator-")
    assert [mark.name for mark in params[-1].marks] == ["needs"]
