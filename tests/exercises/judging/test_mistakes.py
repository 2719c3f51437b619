"""The likely mistake behind wrong results."""

from __future__ import annotations

import pytest

from common.exercises.judge import likely_mistake

SCENARIOS = [1, 2, 3, 4]
RESULTS = {"doubled": lambda x: 2 * x, "squared": lambda x: x * x}


@pytest.mark.parametrize(
    ("found", "failed", "mistake"),
    [
        ([2, 4, 6, 8], 3, "doubled"),
        ([1, 4, 9, 16], 2, "squared"),  # 2 * 2 is the same, but explains no other result
        ([1, 4, 9], 3, "squared"),  # the program ended before the last scenario
        ([2, 0, 0, 0], 1, ""),  # explains one result of four
        ([0, 0, 0, 0], 1, ""),
    ],
)
def test_a_mistake_must_explain_most_results(found, failed, mistake):
    got = likely_mistake(RESULTS, lambda scenario, name: RESULTS[name](scenario), SCENARIOS, found, failed)
    assert got == mistake
