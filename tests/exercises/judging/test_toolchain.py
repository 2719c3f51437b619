"""What checks learn of a setup.py through stand-ins for the compilers."""

from __future__ import annotations

import pytest

from common.exercises.judge import Failure
from common.exercises.judging.toolchain import CompilerCommand, commands
from common.exercises.judging.work import Work

pytestmark = pytest.mark.needs("ninja")
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

extension = CUDAExtension("some._C", ["csrc/host.cpp", "csrc/device.cu"], extra_compile_args={"nvcc": ["-lineinfo"]})
setup(name="some", packages=[], ext_modules=[extension], cmdclass={"build_ext": BuildExtension})
"""


class Folder:
    """Of a `Work` only what is asked for here: a learner's folder in which Python runs."""

    isolation, seconds, observe = None, 60, Work.observe

    def __init__(self, path):
        self.folder = path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "csrc").mkdir()
    for name in ("host.cpp", "device.cu"):
        (tmp_path / "csrc" / name).write_text("#error the stand-ins compile nothing\n")
    return Folder(tmp_path)


def test_every_call_of_a_compiler_is_told(folder, monkeypatch):
    for name in ("CC", "CXX", "PYTORCH_NVCC"):
        monkeypatch.setenv(name, "/nowhere")
    (folder.folder / "setup.py").write_text(SETUP)
    before = sorted(folder.folder.rglob("*"))
    *compiled, linked = commands(folder, TORCH_CUDA_ARCH_LIST="8.6")
    host, device = sorted(compiled, key=lambda command: command.tool)
    assert (host.tool, host.source, host.result) == ("c++", "host.cpp", "host.o")
    assert (device.tool, device.source, device.result) == ("nvcc", "device.cu", "device.o")
    assert device.own[0].endswith("device.cu")
    assert "-lineinfo" in device.own
    assert "-lineinfo" not in host.words
    assert "-gencode=arch=compute_86,code=sm_86" in device.words
    assert (linked.tool, linked.source) == ("c++", "")
    assert linked.result.startswith("_C")
    assert sorted(folder.folder.rglob("*")) == before, "nothing is left in the learner's folder"


def test_what_a_setup_py_says_when_it_fails(folder):
    (folder.folder / "setup.py").write_text(SETUP.replace("CUDAExtension(", "CUDAExtention(", 1))
    with pytest.raises(Failure, match=r"setup\.py fails with an error:[^$]*NameError: name 'CUDAExtention'"):
        commands(folder)


def test_a_call_without_a_result_is_no_compilation():
    assert CompilerCommand("nvcc", ["--version"]).result == ""
