"""The results of PTX instructions on a GPU. Whether the emulator has the same is a test of the emulator."""

from __future__ import annotations

import json

import pytest

from common.studies.ptx import recorder
from common.studies.ptx.recorder import Recorded


def test_the_record_has_every_instruction_in_each_thread():
    recorded = json.loads(recorder.RECORDED.read_text())
    assert set(recorded) == {one.text for one in recorder.INSTRUCTIONS}
    assert {len(row) for row in recorded.values()} == {recorder.THREADS}


@pytest.mark.parametrize(
    ("error", "got", "expected", "same"),
    [
        (0, "3f800000", "3f800000", True),
        (0, "3f800001", "3f800000", False),
        (2.0**-20, "3f800001", "3f800000", True),
        (2.0**-20, "3f800100", "3f800000", False),
        (0, "7fc00000", "ffffffff", True),  # two NaN
        (2.0**-20, "7fc00000", "3f800000", False),
    ],
)
def test_results_are_compared_as_exactly_as_they_are_known(error, got, expected, same):
    assert recorder.is_same(Recorded("rcp.approx.f32 %0, %1;", "ff", error), got, expected) == same


def test_integers_are_compared_bit_by_bit():
    one = Recorded("add.u32 %0, %1, %2;", "rrr", 1.0)
    assert recorder.is_same(one, "7fc00000", "7fc00000")
    assert not recorder.is_same(one, "7fc00000", "ffffffff")
