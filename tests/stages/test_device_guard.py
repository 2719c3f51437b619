"""The stages' device guards, on two devices, emulated or real: tensors on the second, while the first is current."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
import torch

from common import stages
from common.paths import ROOT
from support.proofs.files import stage_files
from support.suite.warm import run_warm

pytestmark = pytest.mark.needs("g++")
GUARD = re.compile(r"^ *(?:const )?c10::cuda::CUDAGuard guard\(.*\n", re.MULTILINE)
STARTED = ["common.build.modules", "common.cell.case"]  # by COMPARE
ON_EMULATOR = [
    pytest.param(
        stage.number, marks=pytest.mark.proof("emulated grids", files=stage_files(1, stage.number), uses=STARTED)
    )
    for stage in stages.cell_stages()
    if "emulator" in stage.targets
]
# Loads a stage from a folder, and compares forward and backward with the reference.
COMPARE = """
import sys
from common import load, stages
from common.cell.case import Case, difference, outputs
from common.emulator import collect_counts
from common.stages import Stage
stages.STAGES = (*stages.STAGES, Stage(79, sys.argv[1], "cell", "Unguarded", ("emulator",)))
stage = load(int(sys.argv[2]), "emulator")
case = Case(3, 5, 70)
try:
    with collect_counts(stage) as counted:
        got = outputs(stage.lltm, case)
    on_other_streams = [launch.kernel for launch in counted.launches if launch.on_other_streams]
    print(difference(case, got) or on_other_streams or "agrees")
except RuntimeError as error:
    print(error)
"""


# The same for the folder alone, on a GPU. "peers" copies from one to another first.
COMPARE_ON_GPUS = """
import sys
import torch
from common import load, stages
from common.cell.case import Case, difference, outputs
from common.stages import Stage
stages.STAGES = (*stages.STAGES, Stage(79, sys.argv[1], "cell", "Unguarded", ("cuda",)))
stage = load(79, "cuda")
if "peers" in sys.argv:
    torch.ones(1, device="cuda:0").to("cuda:1")
case = Case(3, 5, 70, device=sys.argv[2])
try:
    print(difference(case, outputs(stage.lltm, case)) or "agrees")
except RuntimeError as error:
    print(error)
"""


def compare(folder: Path, number: int, device: int) -> str:
    """Returns "agrees", or what is wrong while the tensors are on this one of two emulated devices."""
    settings = {"EMULATOR_DEVICES": "2", "EMULATOR_TENSOR_DEVICE": str(device)}
    return run(COMPARE, str(folder), str(number), settings=settings)


def run(code: str, *arguments: str, settings: dict[str, str]) -> str:
    """What a script prints, in a process of its own."""
    done = run_warm(code, *arguments, cwd=ROOT, environment=os.environ | settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def with_guards(folder: Path, guard: str) -> Path:
    """Stage 3 in a new folder, with this line in place of the guards of forward and backward."""
    copy = folder / "stage79_unguarded"
    shutil.copytree(stages.get_stage(3).folder, copy, ignore=shutil.ignore_patterns("exercises", "__pycache__"))
    source = copy / "csrc" / "lltm.cpp"
    text, guards = GUARD.subn(guard, source.read_text())
    assert guards == 2
    source.write_text(text)
    return copy


@pytest.mark.syllabus("9.2b")
@pytest.mark.parametrize("number", ON_EMULATOR)
def test_a_stage_launches_on_the_device_of_its_tensors(number):
    assert compare(stages.get_stage(number).folder, number, device=1) == "agrees"


@pytest.mark.proof("stages' tests", files=stage_files(3), uses=STARTED)
def test_a_guard_of_a_stream_makes_its_device_current(tmp_path):
    guard = "  c10::cuda::CUDAStreamGuard guard(c10::cuda::getCurrentCUDAStream(1));\n"
    assert compare(with_guards(tmp_path, guard), 79, device=1) == "agrees"


@pytest.mark.syllabus("9.2b")
@pytest.mark.proof("stages' tests", files=stage_files(3), uses=STARTED)
def test_without_its_guard_a_stage_fails_on_the_second_device_only(tmp_path):
    folder = with_guards(tmp_path, "")
    assert compare(folder, 79, device=0) == "agrees"
    report = compare(folder, 79, device=1)
    assert "error: reads z, which is memory of device 1, but the kernel runs on device 0" in report


@pytest.mark.syllabus("9.2b")
@pytest.mark.needs("gpu:2", "nvcc")
def test_without_its_guard_a_stage_fails_on_the_second_gpu_only(tmp_path):
    folder = with_guards(tmp_path, "")
    assert run(COMPARE_ON_GPUS, str(folder), "cuda:0", settings={}) == "agrees"
    report = run(COMPARE_ON_GPUS, str(folder), "cuda:1", settings={})
    assert "an illegal memory access was encountered" in report


@pytest.mark.syllabus("9.2b")
@pytest.mark.needs("gpu:2", "nvcc")
def test_a_copy_between_gpus_hides_the_missing_guard(tmp_path):
    """For the copy, torch enables the access of each GPU to the other's memory."""
    if not torch.cuda.can_device_access_peer(0, 1):
        pytest.skip("these GPUs cannot access each other's memory")
    assert run(COMPARE_ON_GPUS, str(with_guards(tmp_path, "")), "cuda:1", "peers", settings={}) == "agrees"
