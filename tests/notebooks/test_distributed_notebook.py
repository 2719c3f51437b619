"""What notebook 09 says of device guards and of the recorded scaling."""

from __future__ import annotations

import os

import pytest

from common.paths import ROOT
from support.proofs.files import notebook_files
from support.suite.warm import run_warm

pytestmark = pytest.mark.proof("claims of notebooks", files=notebook_files("09_distributed"))

# Calls a launcher of the notebook with a tensor on one of two emulated devices.
ADD_ONE = """
import sys, torch
sys.path.insert(0, "tests")
from common.inline import inline
from support.labs import texts
notebook = texts("09_distributed")
names = ["without_guard", "with_guard"]
guards = inline("guards", notebook["GUARDS_CPP"], notebook["GUARDS_CU"], names, target="emulator")
x = torch.zeros(300)
try:
    getattr(guards, sys.argv[1])(x)
    print("right" if (x == 1).all() else "wrong")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.needs("g++")
@pytest.mark.syllabus("9.2b")
@pytest.mark.parametrize(("function", "device"), [("without_guard", 0), ("with_guard", 0), ("with_guard", 1)])
def test_a_launcher_is_right_on_its_tensor_s_device(function, device):
    assert add_one(function, device).endswith("right")


@pytest.mark.needs("g++")
@pytest.mark.syllabus("9.2b")
def test_without_a_guard_the_second_device_reports_an_access_to_its_memory():
    report = add_one("without_guard", 1)
    assert "reads x, which is memory of device 1, but the kernel runs on device 0, in guards.cu:6" in report


def add_one(function: str, device: int) -> str:
    settings = {"EMULATOR_DEVICES": "2", "EMULATOR_TENSOR_DEVICE": str(device)}
    done = run_warm(ADD_ONE, function, cwd=ROOT, environment=os.environ | settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
