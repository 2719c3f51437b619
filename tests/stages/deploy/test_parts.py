"""The C++ tests of the batcher and of the streams, in the folder cpp: failures that no request can cause."""

from __future__ import annotations

import pytest

from common.paths import ROOT
from support import ctest

CPP = ROOT / "tests" / "stages" / "deploy" / "cpp"
pytestmark = [
    pytest.mark.needs("cmake", "g++", "googletest"),
    pytest.mark.proof("stages' tests", files=["tests/stages/deploy/cpp/*", "stages/stage8_deploy/csrc/*"]),
]


@pytest.mark.parametrize("case", ctest.written(CPP))
def test_case(case):
    ctest.assert_passed(CPP, case)


def test_no_case_of_ctest_is_left_out():
    assert ctest.left_out(CPP) == []
