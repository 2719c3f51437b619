"""The arithmetic on records of scaling."""

from __future__ import annotations

import pytest

from common.studies.distributed.traces import ideal_step, intersect, measure_communication, merge

ROWS = [
    {"scaling": "weak", "processes": 1, "batch": 128, "step": 15.0},
    {"scaling": "weak", "processes": 4, "batch": 512, "step": 16.0},
    {"scaling": "strong", "processes": 1, "batch": 256, "step": 28.0},
    {"scaling": "strong", "processes": 4, "batch": 256, "step": 9.0},
]


@pytest.mark.syllabus("9.2d")
def test_ideally_weak_scaling_keeps_the_time_and_strong_scaling_divides_it():
    assert [ideal_step(row, ROWS) for row in ROWS] == [15.0, 15.0, 28.0, 7.0]


def test_merge_unites_intervals_that_overlap_or_touch():
    assert merge([]) == []
    assert merge([(5, 6), (0, 2), (1, 3), (3, 4), (0, 1)]) == [(0, 4), (5, 6)]
    assert merge([(0, 10), (2, 3)]) == [(0, 10)]


def test_intersect():
    assert intersect([(0, 4), (6, 8)], [(1, 2), (3, 7)]) == [(1, 2), (3, 4), (6, 7)]
    assert intersect([(0, 1)], [(1, 2)]) == []


@pytest.mark.syllabus("9.2d")
@pytest.mark.parametrize(
    ("trace", "communication", "not_hidden"),
    [
        ([], 0, 0),
        ([("compute", 0, 5)], 0, 0),
        ([("compute", 0, 5), ("communication", 1, 3)], 2, 0),
        ([("compute", 0, 5), ("communication", 5, 9)], 4, 4),
        # Two kernels compute at once, and two exchanges overlap: no moment counts twice.
        ([("compute", 0, 4), ("compute", 2, 5), ("communication", 3, 7), ("communication", 6, 8)], 5, 3),
        ([("compute", 0, 1), ("compute", 2, 3), ("communication", 0.5, 2.5)], 2, 1),
    ],
)
def test_communication_is_hidden_where_something_is_computed(trace, communication, not_hidden):
    assert measure_communication(trace) == {"communication": communication, "not_hidden": not_hidden}
