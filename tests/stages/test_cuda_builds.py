"""Stages 3 and 4 built by setup.py and by `load`, outside the repository; and for every architecture there is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from common.build import library, nvcc
from common.cell.case import Case, difference
from common.stages import get_stage
from support.proofs.files import stage_files

pytestmark = [pytest.mark.needs("g++", "nvcc", "ninja"), pytest.mark.proof("stages' tests", files=stage_files(3, 4))]

# Calls the cell on CUDA tensors where there is a GPU. Elsewhere it shows that the code runs up to its first check.
# With a GPU it leaves without Python's own end, where a thread of torch may crash: docs/troubleshooting.md, "Aborted
# after the last line".
USE = """
import os, sys, torch
CASE, RESULT = sys.argv[1:]
inputs, gradients = torch.load(CASE)
try:
    new_h, new_cell = lltm(*inputs.values())
    d = torch.autograd.grad((new_h, new_cell), list(inputs.values()), gradients)
    got = {"new_h": new_h.detach(), "new_cell": new_cell.detach()}
    torch.save(got | {f"d_{name}": gradient for name, gradient in zip(inputs, d)}, RESULT)
except RuntimeError as error:
    print(error, flush=True)
if torch.cuda.is_available():
    os._exit(0)
"""
INSTALLED = "from {package} import lltm\n" + USE
LOADED = (
    """
import types
from torch.utils.cpp_extension import load
_C = load("_C", ["csrc/lltm.cpp", "csrc/lltm_kernel.cu"], build_directory={folder!r})
around = types.SimpleNamespace(_C=_C, __name__="lltm")
exec(open("lltm.py").read().replace("from . import _C\\n", ""), vars(around))
lltm = around.lltm
"""
    + USE
)


@pytest.fixture(params=[3, 4], ids=["stage3", "stage4"])
def stage(request):
    return get_stage(request.param)


@pytest.fixture
def environment() -> dict[str, str]:
    """This process's, with an architecture for torch to build for where no GPU tells it one."""
    return {**os.environ, "TORCH_CUDA_ARCH_LIST": architectures_here(), "MAX_JOBS": "2"}


def architectures_here() -> str:
    return ".".join(map(str, torch.cuda.get_device_capability())) if torch.cuda.is_available() else "9.0"


def use(script: str, folder: Path, environment: dict[str, str]) -> None:
    """Runs a script that has `lltm` on one case, in a fresh process; what comes out must be the reference's."""
    on_gpu = torch.cuda.is_available()
    case = Case(3, 5, 70, device="cuda" if on_gpu else "cpu")
    given, result = folder / "case.pt", folder / "result.pt"
    torch.save((case.inputs(), case.gradients()), given)
    command = [sys.executable, "-c", script, str(given), str(result)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    if on_gpu:
        assert difference(case, torch.load(result)) is None
    else:
        assert "lltm: input is on cpu, expected a CUDA device" in done.stdout


def copied(stage, folder: Path) -> Path:
    """The stage alone, as someone who copies it out of here has it."""
    return shutil.copytree(stage.folder, folder / "stage", ignore=shutil.ignore_patterns("build", "__pycache__"))


def test_pip_installs_a_package_that_works_anywhere(stage, tmp_path, environment):
    target = tmp_path / "installed"
    options = ["--no-build-isolation", "--no-index", "--quiet", "--target", str(target)]
    command = [sys.executable, "-m", "pip", "install", *options, str(copied(stage, tmp_path))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    use(INSTALLED.replace("{package}", stage.package), tmp_path, {**environment, "PYTHONPATH": str(target)})


def test_load(stage, tmp_path, environment):
    folder = copied(stage, tmp_path)
    (tmp_path / "built").mkdir()
    use(LOADED.replace("{folder!r}", repr(str(tmp_path / "built"))), folder, environment)


def test_compiles_for_every_architecture(stage, monkeypatch):
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    made = library.build_stage(stage, "compile-only")
    names = {name.removeprefix("sm_") for name in json.loads(made.path.read_text())}
    assert len(names) > 5
    assert names <= {name.replace(".", "") for name in nvcc.supported_architectures()}
