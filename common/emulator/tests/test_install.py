"""The emulator as a separate tool: pip installs it into an empty environment without a network, and it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

from common.paths import ROOT

PACKAGE = ROOT / "common" / "emulator"
CPP = (".h", ".cuh", ".cpp", ".cu")
PROGRAM = """#include <cstdio>
__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int *x, last;
  cudaMalloc(&x, 32 * sizeof(int));
  fill<<<1, 32>>>(x);
  cudaMemcpy(&last, x + 31, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(x);
  printf("%d\\n", last);
}
"""


def run(*command: object, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """Runs a command with only PATH from this environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True)


def only_setuptools(folder: Path) -> Path:
    """A folder with this environment's setuptools, which pip would download to build a package, and nothing else."""
    folder.mkdir()
    found = distribution("setuptools")
    for name in {file.parts[0] for file in found.files} & {"setuptools", "_distutils_hack", Path(found._path).name}:
        (folder / name).symlink_to(found.locate_file(name))
    return folder


def contents(folder: Path, *suffixes: str) -> set[Path]:
    """The files in a folder, relative to it."""
    return {path.relative_to(folder) for path in folder.rglob("*") if path.suffix in suffixes}


@pytest.mark.needs("g++", "setuptools", "pip")
def test_in_an_empty_environment_it_runs_a_program(tmp_path):
    before = {path for path in PACKAGE.rglob("*") if path.name != "__pycache__" and path.suffix != ".pyc"}
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    path = str(only_setuptools(tmp_path / "build"))
    options = ["--quiet", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    done = run(python, "-m", "pip", "install", *options, PACKAGE, folder=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    after = {path for path in PACKAGE.rglob("*") if path.name != "__pycache__" and path.suffix != ".pyc"}
    assert after == before

    [installed] = (tmp_path / "env").glob("lib/python*/site-packages/cuemu")
    for name in ("runtime", "libraries"):
        assert contents(installed / name, *CPP) == contents(PACKAGE / name, *CPP)
    here = {path for path in contents(PACKAGE, ".py") if path.parts[0] not in ("tests", "setup.py")}
    assert contents(installed, ".py") == here

    (tmp_path / "fill.cu").write_text(PROGRAM)
    done = run(tmp_path / "env" / "bin" / "cuemu", "run", "fill.cu", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    assert done.stderr == "emulator: 1 launch, no problem found\n"
    (tmp_path / "fill.cu").write_text(PROGRAM.replace("1, 32>>>", "1, 33>>>"))
    done = run(python, "-m", "cuemu", "run", "fill.cu", folder=tmp_path)
    assert done.returncode == 66
    assert "error: writes past the end of x, in fill.cu:2 (memory)" in done.stderr
    assert (tmp_path / ".cache" / "cuemu" / "objects").is_dir()
    assert sys.prefix not in run(python, "-c", "import sys; print(sys.path)", folder=tmp_path).stdout
