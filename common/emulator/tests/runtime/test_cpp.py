"""The C++ tests of the emulator's runtime in the folder cpp, and its features compared with a GPU."""

from __future__ import annotations

import functools
import json

import pytest

from common.stages import ROOT
from support import ctest
from support.features import compare

CPP = ROOT / "common" / "emulator" / "tests" / "runtime" / "cpp"
pytestmark = [
    pytest.mark.needs("cmake", "g++", "googletest"),
    pytest.mark.proof(
        "C++ tests of the emulator", files=["common/emulator/tests/runtime/cpp/*"], uses=["common.emulator.rewrite"]
    ),
]


@pytest.mark.parametrize("case", ctest.written(CPP))
def test_case(case):
    ctest.assert_passed(CPP, case)


def test_no_case_of_ctest_is_left_out():
    assert ctest.left_out(CPP) == []


@functools.cache
def recordings() -> tuple[dict, dict]:
    """What every feature returns: on the emulator now, and as recorded from the same sources on an H200."""
    where = ctest.built(CPP)
    ctest.run("cmake", "--build", str(where), "--target", "record", "--parallel", "2")
    return json.loads(ctest.run(str(where / "record"))), json.loads((CPP / "h200.json").read_text())


def test_the_emulator_gives_what_a_gpu_gives():
    emulated, recorded = recordings()
    assert compare(emulated, recorded) == []
    assert sum(len(feature["bits"]) for feature in recorded.values()) > 6000


def test_one_wrong_bit_is_seen():
    emulated, recorded = recordings()
    for name, feature in emulated.items():
        step = 1 if feature["kind"] == "integers" else 2 * feature["ulp"] + 1
        wrong = [hex(int(feature["bits"][0], 16) ^ step), *feature["bits"][1:]]
        assert len(compare({**emulated, name: {**feature, "bits": wrong}}, recorded)) == 1, name
