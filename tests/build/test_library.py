"""The build cache: what is built again and what is not, and what an accident leaves behind (nothing)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common import paths, stages
from common.build import library, modules, targets
from common.emulator import first_errors
from common.errors import UserError
from common.paths import ROOT
from common.stages import Stage

pytestmark = pytest.mark.needs("g++")

# Not one line of torch, so that it builds in a second.
SOURCE = """#include <Python.h>
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit__C() {
  PyObject* m = PyModule_Create(&module);
  PyModule_AddIntConstant(m, "answer", 42);
  return m;
}
"""
SETUP = """from setuptools import Extension, setup
setup(name="lltm_stage77", ext_modules=[Extension("lltm_stage77._C", ["csrc/lltm.cpp"])], packages=[])
"""
LLTM = "from . import _C\n\n\ndef lltm():\n    return _C.answer\n"


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Stage:
    """A stage 77 in a temporary folder, with a build folder of its own."""
    folder = tmp_path / "stage77_toy"
    (folder / "csrc").mkdir(parents=True)
    (folder / "csrc" / "lltm.cpp").write_text(SOURCE)
    (folder / "setup.py").write_text(SETUP)
    (folder / "lltm.py").write_text(LLTM)
    (folder / "__init__.py").write_text("from .lltm import lltm\n")
    (folder / "README.md").write_text("# Toy\n")
    stage = Stage(77, str(folder), "cell", "Toy", ("host",))
    monkeypatch.setattr(stages, "STAGES", (*stages.STAGES, stage))
    monkeypatch.setenv("BUILD_DIR", str(tmp_path / "build"))
    return stage


def change(stage: Stage, old: str, new: str) -> None:
    path = stage.folder / "csrc" / "lltm.cpp"
    path.write_text(path.read_text().replace(old, new))


def builder(stage: Stage) -> subprocess.Popen:
    """Another process that builds the same stage into the same folder."""
    code = (
        "from common.build import library\nfrom common.stages import Stage\n"
        f"print(library.build_stage(Stage(77, {stage.folder_name!r}, 'cell', 'Toy', ('host',)), 'host').cached)"
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_built_once_then_found(toy):
    first, second = library.build_stage(toy, "host"), library.build_stage(toy, "host")
    assert (first.cached, second.cached) == (False, True)
    assert first.path == second.path
    assert second.seconds == pytest.approx(first.seconds, abs=0.01)


@pytest.mark.syllabus("2.5b")
def test_an_edit_is_built_and_its_undoing_found(toy):
    first = library.build_stage(toy, "host")
    change(toy, "42", "43")
    assert not library.build_stage(toy, "host").cached
    change(toy, "43", "42")
    assert library.build_stage(toy, "host").path == first.path


@pytest.mark.parametrize("variable", ["CXXFLAGS", "CFLAGS", "LDFLAGS"])
def test_flags_are_part_of_the_key(toy, monkeypatch, variable):
    before = library.folder_key(toy.folder, "host")
    monkeypatch.setenv(variable, "-O1")
    assert library.folder_key(toy.folder, "host") != before


def test_the_compiler_is_part_of_the_key(toy, monkeypatch, tmp_path):
    before = library.folder_key(toy.folder, "host")
    other = tmp_path / "g++-99"
    other.write_text("#!/bin/sh\necho 'g++ 99.0'\n")
    other.chmod(0o755)
    monkeypatch.setenv("CXX", str(other))
    assert library.folder_key(toy.folder, "host") != before


def test_loads_once_for_a_target(toy, monkeypatch):
    for name in ("lltm_stage77", "lltm_stage77.lltm", "lltm_stage77._C"):
        monkeypatch.setitem(sys.modules, name, None)  # forgotten again after the test
        del sys.modules[name]
    loaded = modules.load_stage(77)
    assert loaded.lltm() == 42
    assert loaded.TARGET == "host"
    monkeypatch.setattr(subprocess, "Popen", None)  # a stage that is imported starts no process
    assert modules.load_stage(77, "host") is loaded
    assert modules.load_stage(77) is loaded


@pytest.mark.needs("g++")
def test_two_targets_of_a_stage_in_one_process():
    """On a GPU the tests hold stage 3's kernels on the device and on the emulator against one another."""
    best, emulated = modules.load_stage(3), modules.load_stage(3, "emulator")
    assert emulated.TARGET == "emulator"
    assert (best is emulated) == (best.TARGET == "emulator")


def test_nothing_is_written_beside_the_sources(toy):
    before = sorted(toy.folder.rglob("*"))
    library.build_stage(toy, "host")
    assert sorted(toy.folder.rglob("*")) == before


def test_a_compile_error_shows_the_line(toy):
    change(toy, "return m;", "return undeclared;")
    with pytest.raises(UserError) as error:
        library.build_stage(toy, "host")
    assert "csrc/lltm.cpp:6" in str(error.value)
    assert "undeclared" in str(error.value)
    change(toy, "return undeclared;", "return m;")
    assert not library.build_stage(toy, "host").cached


def test_two_at_once_build_once(toy):
    processes = [builder(toy), builder(toy)]
    answers = sorted(process.communicate(timeout=100)[0].strip() for process in processes)
    assert answers == ["False", "True"]


def test_a_killed_build_leaves_nothing_in_the_way(toy):
    process = builder(toy)
    folder = paths.build_dir() / "lltm_stage77-host"
    deadline = time.monotonic() + 60
    while not list(folder.glob("*.unfinished/log.txt")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(folder.glob("*.unfinished")), "killed too late to prove anything"
    assert not library.build_stage(toy, "host").cached
    assert not list(folder.glob("*.unfinished"))


def test_a_broken_compiler_is_named(toy, monkeypatch, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'broken: fatal error: no licence today' >&2; exit 1\n")
    broken.chmod(0o755)
    for name in ("CC", "CXX"):
        monkeypatch.setenv(name, str(broken))
    with pytest.raises(UserError, match="no licence today"):
        library.build_stage(toy, "host")
    monkeypatch.delenv("CC")
    monkeypatch.delenv("CXX")
    assert not library.build_stage(toy, "host").cached


def test_no_compiler_at_all(toy, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UserError, match="no C\\+\\+ compiler; `make doctor` says what to install"):
        library.build_stage(toy, "host")


def test_a_full_disk_is_named(toy, monkeypatch):
    def full(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(28, os.strerror(28), str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", full)
        with pytest.raises(UserError, match="lltm_stage77-host: No space left on device"):
            library.build_stage(toy, "host")
    assert not library.build_stage(toy, "host").cached


def test_a_disk_that_fills_up_while_compiling(toy, monkeypatch, tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text(
        "#!/bin/sh\necho 'fatal error: error writing to lltm.o: No space left on device' >&2; exit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(UserError, match="No space left on device"):
        library.build_stage(toy, "host")


def test_unknown_target(toy):
    with pytest.raises(UserError, match="there is no target 'tpu'"):
        library.build_stage(toy, "tpu")


def test_first_errors_leaves_the_noise_out():
    log = "ninja: build stopped\nx.cpp:3:1: error: no\nRuntimeError: Error compiling objects\n"
    assert first_errors(log) == "  x.cpp:3:1: error: no"
    assert first_errors("only\nthis") == "  only\n  this"


@pytest.mark.parametrize(
    ("here", "number", "wanted"),
    [
        (("host", "emulator", "cuda"), 5, ["cuda", "host"]),
        (("host", "emulator"), 5, ["host", "emulator"]),
        (("host",), 5, ["host"]),
        (("host", "emulator", "cuda"), 3, ["cuda"]),
        (("host", "emulator"), 3, ["emulator"]),
        (("host", "emulator", "cuda"), 2, ["host"]),
        ((), 1, ["host"]),
    ],
)
def test_the_code_for_each_kind_of_device_is_checked(monkeypatch, here, number, wanted):
    monkeypatch.setattr(targets, "why_unavailable", lambda target: None if target in here else "not here")
    assert targets.choose_targets(stages.find_stage(number), None) == wanted
    if "host" in here and "host" in stages.find_stage(number).targets:
        assert targets.choose_targets(stages.find_stage(number), "host") == ["host"]
