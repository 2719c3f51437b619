"""The C++ tests of the stages' gate functions, in the folder cpp."""

from __future__ import annotations

import pytest

from common.stages import ROOT
from support import ctest

CPP = ROOT / "tests" / "stages" / "cpp"
pytestmark = [
    pytest.mark.needs("cmake", "g++", "googletest"),
    pytest.mark.proof("stages' tests", files=["tests/stages/cpp/*", "stages/*/csrc/lltm_math.h"]),
]


@pytest.mark.parametrize("case", ctest.written(CPP))
def test_case(case):
    ctest.assert_passed(CPP, case)


def test_no_case_of_ctest_is_left_out():
    assert ctest.left_out(CPP) == []


def test_the_header_is_the_same_in_every_stage():
    """But for what it includes: from stage 5 on there is a CPU to build for, where CUDA's headers may be missing."""
    headers = {path.parts[-3]: path.read_text() for path in ROOT.glob("stages/*/csrc/lltm_math.h")}
    with_cpu = {text for name, text in headers.items() if name >= "stage5"}
    without = {text for name, text in headers.items() if name < "stage5"}
    assert len(headers) > 2
    assert len(with_cpu) == len(without) == 1
    functions = {text.partition("#include <cmath>")[2] for text in headers.values()}
    assert len(functions) == 1
