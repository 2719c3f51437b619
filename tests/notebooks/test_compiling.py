"""What the notebooks say of headers, macros and compilers: asked of the compiler itself, and nothing is run."""

from __future__ import annotations

import logging
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from torch.utils.cpp_extension import (
    get_compiler_abi_compatibility_and_version,
    include_paths,
    library_paths,
    load_inline,
)

from common import stages
from common.emulator import INCLUDE_DIR, compiler_command
from support.labs import ATEN, POINTERS
from support.proofs.files import notebook_files, stage_files

pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof(
        "claims of notebooks",
        files=[*notebook_files("02_aten", "02b_building", "03_cuda_pointers", "03b_kernel_in_torch"), *stage_files()],
    ),
]

TORCH = Path(torch.__file__).parent
TORCH_HEADERS = [flag for path in include_paths() for flag in ("-isystem", path)]
PYTHON_HEADERS = ["-isystem", sysconfig.get_path("include")]
# Newer versions of torch need C++20, older ones know no more than 17.
STANDARD = "-std=c++20" if torch.torch_version.TorchVersion(torch.__version__) >= (2, 12) else "-std=c++17"
NARROW = """
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""


def compile(source: str, *flags: str, headers: list[str] = TORCH_HEADERS) -> subprocess.CompletedProcess:
    """Gives a source to the compiler; with `-fsyntax-only` it is read and checked, and no code is made."""
    command = [*compiler_command(), STANDARD, *headers, *PYTHON_HEADERS, *flags, "-x", "c++", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True)


def seconds_of(call) -> float:
    """The processor's seconds that the processes took which a call has started: whoever else computes counts not."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_to_read(source: str, headers: list[str] = TORCH_HEADERS) -> float:
    """The processor's seconds that the compiler takes to read and check a source."""

    def read() -> None:
        done = compile(source, "-fsyntax-only", headers=headers)
        assert done.returncode == 0, done.stderr

    return seconds_of(read)


def files_behind(source: str) -> list[str]:
    """The files that the compiler reads for a source."""
    done = compile(source, "-M")
    assert done.returncode == 0, done.stderr
    return [word for word in done.stdout.partition(":")[2].split() if word != "\\"]


# Torch's headers ------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("2.1b")
def test_what_the_header_brings():
    files = files_behind("#include <torch/extension.h>\n")
    brought = {"ATen": "ATen/core/Tensor.h", "pybind11": "pybind11/pybind11.h", "glue": "torch/csrc/utils/pybind.h"}
    for header in brought.values():
        assert any(file.endswith(f"/{header}") for file in files), header
    assert not any("/torch/csrc/" in file for file in files_behind("#include <pybind11/pybind11.h>\n")), "no glue"


@pytest.mark.syllabus("2.1c")
def test_headers_and_libraries_ship_with_torch():
    files = {Path(file).resolve() for file in files_behind("#include <torch/extension.h>\n")}
    own = {file for file in files if file.is_relative_to(TORCH.resolve())}
    assert len(own) > 1000
    bare = compile("", "-v", headers=[]).stderr.partition("starts here:")[2].partition("End of search list")[0]
    known = [Path(folder).resolve() for folder in [*bare.split(), sysconfig.get_path("include")]]
    assert all(any(file.is_relative_to(folder) for folder in known) for file in files - own), (
        "the system's and Python's"
    )
    assert (TORCH / "lib") in map(Path, library_paths())
    for name in ("c10", "torch", "torch_cpu", "torch_python"):
        assert (TORCH / "lib" / f"lib{name}.so").exists()


@pytest.mark.syllabus("2.1d", "2.2b")
def test_narrow_headers_are_read_about_twice_as_fast():
    """A function and its binding with each; the wide one also asks for the type of `torch::Tensor`."""
    function = ATEN["D_SIGMOID"] + "auto bound = torch::wrap_pybind_function(d_sigmoid);\n"
    one_type = "static_assert(std::is_same_v<torch::Tensor, at::Tensor>);\n"
    wide = seconds_to_read("#include <torch/extension.h>\n" + function + one_type)
    narrow = seconds_to_read(NARROW + function)
    assert wide > 1.6 * narrow, (wide, narrow)


@pytest.mark.needs("ninja")
@pytest.mark.syllabus("2.5i")
def test_a_precompiled_header_makes_the_second_build_faster(tmp_path):
    headers = tmp_path / "headers.h"
    headers.write_text("#include <ATen/core/Tensor.h>\n#include <pybind11/pybind11.h>\n")
    source = '#include "headers.h"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.attr("answer") = 42; }\n'

    def build(name: str) -> None:
        (tmp_path / name).mkdir()
        module = load_inline(
            name,
            source,
            no_implicit_headers=True,
            extra_include_paths=[str(tmp_path)],
            build_directory=str(tmp_path / name),
        )
        assert module.answer == 42

    first = seconds_of(lambda: build("first"))
    flags = ["-DTORCH_API_INCLUDE_EXTENSION_H", "-fPIC", STANDARD, *TORCH_HEADERS, *PYTHON_HEADERS]
    command = [*compiler_command(), "-x", "c++-header", *flags, str(headers), "-o", f"{headers}.gch"]
    subprocess.run(command, check=True)
    second = seconds_of(lambda: build("second"))
    assert second < 0.8 * first, (second, first)


# Compilers and binary interfaces --------------------------------------------------------------------------------

REFUSES = """
#include <Python.h>
#include <cstdint>
#include <string>
namespace c10::detail {
[[noreturn]] void torchCheckFail(const char* function, const char* file, uint32_t line, const std::string& message);
}
static PyObject* refuse(PyObject*, PyObject*) { c10::detail::torchCheckFail("refuse", "_C.cpp", 1, "no"); }
static PyMethodDef methods[] = {{"refuse", refuse, METH_NOARGS, nullptr}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&definition); }
"""


@pytest.mark.syllabus("2.6a", "2.6b")
def test_another_abi_of_the_cpp_library_is_an_undefined_symbol(tmp_path):
    """Both compile and link; a `std::string` of the old layout is another type, and so another name."""

    libc10 = [f"-L{TORCH / 'lib'}", "-Wl,--no-as-needed", "-lc10"]

    def imported(abi: int) -> subprocess.CompletedProcess:
        flags = [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-shared", "-fPIC", "-o", "_C.so"]
        command = [*compiler_command(), *flags, *PYTHON_HEADERS, "_C.cpp", *libc10]
        subprocess.run(command, cwd=tmp_path, check=True)
        command = [sys.executable, "-c", "import torch, _C"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    (tmp_path / "_C.cpp").write_text(REFUSES)
    assert imported(1).stderr == ""
    assert torch.compiled_with_cxx11_abi()
    old = imported(0).stderr.strip()
    assert re.search(r"undefined symbol: _ZN3c106detail14torchCheckFail\w+RKSs$", old), "Ss is the old string"


def pretender(path: Path) -> Path:
    """A compiler that says that it is an old one, and writes down what it is asked."""
    path.write_text(f'#!/bin/sh\necho "$@" >> {path.parent}/asked\necho 4.8.5\n')
    path.chmod(0o755)
    return path


@pytest.mark.syllabus("2.6c")
@pytest.mark.parametrize(
    ("name", "warning"), [("g++-4", "may be ABI-incompatible with PyTorch"), ("tinycc", "is not compatible with the")]
)
def test_a_compiler_that_does_not_fit_is_warned_of(name, warning, tmp_path, caplog):
    caplog.set_level(logging.WARNING, logger="torch.utils.cpp_extension")
    assert get_compiler_abi_compatibility_and_version(compiler_command()[-1])[0]
    assert not caplog.records
    assert not get_compiler_abi_compatibility_and_version(str(pretender(tmp_path / name)))[0]
    assert warning in caplog.text


@pytest.mark.needs("ninja")
@pytest.mark.syllabus("2.6c")
def test_torch_asks_the_compiler_before_it_builds(tmp_path):
    (tmp_path / "module.cpp").write_text("")
    code = "from torch.utils.cpp_extension import load\nload('_C', ['module.cpp'], build_directory='.')"
    environment = {**os.environ, "CXX": str(pretender(tmp_path / "g++-4"))}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "may be ABI-incompatible with PyTorch" in done.stderr
    version, *rest = (tmp_path / "asked").read_text().splitlines()
    assert "-dumpfullversion" in version
    assert any("-c" in words.split() for words in rest), "and compiles nevertheless"


# A .cpp and a .cu -----------------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.1a")
def test_each_compiler_sees_only_what_it_must():
    csrc = stages.get_stage(3).folder / "csrc"
    binding, kernels = (csrc / "lltm.cpp").read_text(), (csrc / "lltm_kernel.cu").read_text()
    for of_the_cpp in ("PYBIND11_MODULE", "TORCH_CHECK", "Tensor"):
        assert of_the_cpp in binding
        assert of_the_cpp not in kernels
    for of_the_cu in ("__global__", "<<<", "threadIdx"):
        assert of_the_cu in kernels
        assert of_the_cu not in binding
    read = files_behind_cuda(kernels, csrc)
    assert not any(file.startswith(str(TORCH)) or "/pybind11/" in file for file in read)
    assert not any("lltm_" in file for file in files_behind_cuda(binding, csrc))


def files_behind_cuda(source: str, folder: Path) -> list[str]:
    """The files behind a source that includes CUDA's headers, for which the emulator's stand."""
    done = compile(source, "-std=c++20", "-M", f"-I{INCLUDE_DIR}", f"-I{folder}")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.syllabus("3.5c")
def test_a_cu_without_torchs_headers_is_read_in_half_the_time():
    def seconds(number: int) -> float:
        csrc = stages.get_stage(number).folder / "csrc"
        includes = re.findall(r"^#include .*\n", (csrc / "lltm_kernel.cu").read_text(), re.MULTILINE)
        folders = ["-std=c++20", f"-I{INCLUDE_DIR}", f"-I{csrc}", *TORCH_HEADERS]
        return seconds_to_read("".join(includes), headers=folders)

    pairs = [(seconds(3), seconds(4)) for _ in range(3)]  # the first may read from a disk
    assert min(pair[0] for pair in pairs) < min(pair[1] for pair in pairs) / 2


@pytest.mark.needs("nvcc")
@pytest.mark.syllabus("3.5c")
def test_nvcc_builds_the_kernels_of_stage_3_in_seconds(tmp_path):
    kernels = stages.get_stage(3).folder / "csrc" / "lltm_kernel.cu"
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-c", str(kernels), "-o", str(tmp_path / "kernels.o")]
    assert seconds_of(lambda: subprocess.run(command, check=True)) < 30


# Types ----------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.4a", "3.4b")
def test_the_dispatch_macro_is_a_switch_with_a_lambda_in_each_case():
    text = """
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
void here(const at::Tensor& x) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "kind", [&] { body<scalar_t>(); });
}
"""
    done = compile(text, "-E", "-P")
    assert done.returncode == 0, done.stderr
    expanded = done.stdout[done.stdout.rindex("void here") :]
    head, *cases = re.split(r"\bcase ", expanded.partition("default:")[0])
    assert "switch (" in head
    names = [re.match(r"at::ScalarType::(\w+):", case)[1] for case in cases]
    assert sorted(names) == ["Double", "Float"]
    for name, case in zip(names, cases, strict=True):
        assert re.search(rf"using scalar_t\b[^;]*ScalarType::{name}>[^;]*;.*\[&\] {{ body<scalar_t>\(\); }}", case)
    assert "not implemented for" in expanded.partition("default:")[2]


FUNCTIONS = POINTERS["MATHS_CU"].partition("template <typename scalar_t>\n__global__")[0]
PROMOTES = "#define __device__\n" + FUNCTIONS.replace("#include <cuda_runtime.h>\n", "")


@pytest.mark.syllabus("3.2b")
def test_a_bare_literal_promotes_without_a_word():
    """`elu_literal` and `elu_minus_one` differ in nothing but their literals."""
    source = PROMOTES + "float right(float z) { return elu_minus_one(z); }\n"
    wrong = PROMOTES + "float wrong(float z) { return elu_literal(z); }\n"
    types = "static_assert(sizeof(1.0f - 1.0) == sizeof(double) && sizeof(1.0f - 1) == sizeof(float));\n"
    usual = ["-fsyntax-only", "-Wall", "-Wextra"]
    assert compile(wrong + types, *usual).stderr == ""
    asked = compile(wrong, *usual, "-Wdouble-promotion").stderr
    assert re.search(r"implicit conversion from .float. to .double.", asked)
    assert compile(source, *usual, "-Wdouble-promotion").stderr == ""


@pytest.mark.needs("nvcc")
@pytest.mark.syllabus("3.2b")
def test_nvcc_makes_instructions_on_doubles_of_a_bare_literal(tmp_path):
    def on_doubles(name: str) -> int:
        kernel = f"__global__ void kernel(float* z) {{ z[threadIdx.x] = {name}(z[threadIdx.x]); }}"
        (tmp_path / "kernel.cu").write_text(FUNCTIONS + kernel)
        command = [shutil.which("nvcc"), "-ptx", "-arch=sm_90", "kernel.cu", "-o", "kernel.ptx"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert "warning" not in done.stderr
        lines = (tmp_path / "kernel.ptx").read_text().splitlines()
        return sum(".f64" in line and not line.strip().startswith(".reg") for line in lines)

    assert on_doubles("elu_literal") > 0
    assert on_doubles("elu_minus_one") == on_doubles("elu_expm1") == 0
