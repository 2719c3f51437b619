"""What a learner is handed out of a stage: its package, without the files that show the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.errors import UserError
from common.exercises import find, variants


def test_a_file_that_shows_the_answer_is_not_handed_out():
    cell = find("1/cell")
    handed_out = variants.starter(cell)
    assert set(variants.starter(replace(cell, without=()))) - set(handed_out) == {"by_hand.py"}
    assert "F.elu" not in "".join(handed_out.values())
    assert set(variants.solution(cell)) == set(handed_out)


def test_a_file_that_is_not_there_cannot_be_left_out():
    with pytest.raises(UserError, match=r"1/cell: exercise.ini: without = lltm.cpp: no such file"):
        variants.starter(replace(find("1/cell"), without=("lltm.cpp",)))
