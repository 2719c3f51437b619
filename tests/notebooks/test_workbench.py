"""The notebooks' workbench: files that are not written twice, commands in the folder for builds, and timings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

from common import workbench
from common.workbench import Timings


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "another")
    return workbench.build_folder()


def test_torch_builds_in_the_same_folder(folder, tmp_path):
    assert folder.is_relative_to(tmp_path)
    assert torch.__version__ in folder.name
    assert os.environ["TORCH_EXTENSIONS_DIR"] == str(folder)


def test_a_file_is_written_when_its_text_is_new():
    path = workbench.write("sources/one.cpp", "int one;\n")
    os.utime(path, (1, 1))
    assert workbench.write("sources/one.cpp", "int one;\n").stat().st_mtime == 1
    assert workbench.write("sources/one.cpp", "int two;\n").stat().st_mtime > 1
    assert path.read_text() == "int two;\n"


def test_a_command_runs_in_the_folder_for_builds(folder, tmp_path):
    code = "import os, sys; print(os.getcwd(), sys.stdin.read()); sys.exit('bad')"
    assert workbench.run(sys.executable, "-c", code, text="given") == (1, f"{folder} given\nbad")
    assert workbench.run("pwd", folder=tmp_path) == (0, str(tmp_path))


@pytest.mark.parametrize(("version", "stays"), [("2.13.1+cu132", False), ("2.14.0", True)])
def test_locks_of_killed_builds_are_removed_where_torch_would_wait(folder, monkeypatch, version, stays):
    monkeypatch.setattr(torch, "__version__", version)
    lock = workbench.write("first/lock", "")
    workbench.remove_locks()
    assert lock.exists() == stays


def test_the_lock_of_a_build_that_runs_stays(folder, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.13.1+cu132")
    with workbench.write("first/lock", "").open() as lock:
        workbench.remove_locks()
        assert Path(lock.name).exists()
    workbench.remove_locks()
    assert not Path(lock.name).exists()


def test_the_longest_time_is_kept_for_the_next_run(tmp_path, monkeypatch):
    now = iter([0, 3, 10, 11, 20])
    monkeypatch.setattr(workbench.time, "perf_counter", lambda: next(now))
    timed = Timings(tmp_path / "seconds.json")
    for _ in range(2):
        with timed("a build"):
            pass
    with pytest.raises(ValueError, match="no"), timed("a failure"):
        raise ValueError("no")
    assert timed.seconds == Timings(tmp_path / "seconds.json").seconds == {"a build": 3}


def test_the_compiler_finds_the_headers_of_torch_and_python():
    source = "#include <ATen/core/Tensor.h>\n#include <Python.h>\nat::Tensor f(PyObject*);\n"
    assert workbench.run(*workbench.torch_compiler(), "-fsyntax-only", "-x", "c++", "-", text=source) == (0, "")
    assert workbench.torch_compiler("-std=c++14")[1] == "-std=c++14"
