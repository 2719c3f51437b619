"""`load_extension`: modules of any name, sources in any folder, and messages. The tests need only Python's header."""

from __future__ import annotations

import importlib.util
import json
import shutil

import pytest

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.skipif(importlib.util.find_spec("setuptools") is None, reason="needs setuptools"),
]
SETUP = """from setuptools import Extension, setup
setup(name="toy", packages=[], ext_modules=[
    Extension("toy.kernels", ["binding.cpp", "../shared/fill.cu"], include_dirs=["../shared"]),
])
"""
BINDING = """#include <Python.h>
#include <stdexcept>
#include <vector>
void fill(float* x, int count);
static PyObject* run(PyObject*, PyObject* arguments) {
  int count;
  if (!PyArg_ParseTuple(arguments, "i", &count)) return nullptr;
  std::vector<float> x(count);
  try {
    fill(x.data(), count);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  return PyFloat_FromDouble(x.back());
}
static PyMethodDef methods[] = {{"run", run, METH_VARARGS, ""}, {}};
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define JOINED_OF(a, b) a##b
#define JOINED(a, b) JOINED_OF(a, b)
static PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(TORCH_EXTENSION_NAME), nullptr, -1, methods};
PyMODINIT_FUNC JOINED(PyInit_, TORCH_EXTENSION_NAME)() { return PyModule_Create(&module); }
"""
KERNEL = """#include <cuda_runtime.h>
#include "value.cuh"
__global__ void fill_kernel(float* x) { x[threadIdx.x] = value(); }
void fill(float* x, int count) { fill_kernel<<<1, count>>>(x); }
"""
VALUE = "__device__ inline float value() { __shared__ float v; v = 42; __syncthreads(); return v; }\n"
LOAD = """import json, sys
from pathlib import Path
from cuemu import UserError, collect_counts, load_extension
def load(*arguments, **options):
    try:
        return load_extension("toy", *arguments, **options)
    except UserError as error:
        print(json.dumps(str(error)))
        sys.exit()
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a setup.py, with some of its sources in a folder beside it."""
    for path, text in {"toy/setup.py": SETUP, "toy/binding.cpp": BINDING, "shared/fill.cu": KERNEL}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "shared" / "value.cuh").write_text(VALUE)
    return tmp_path


@pytest.fixture
def answer(python):
    """Runs code and returns its answer: the JSON that it prints."""

    def run(code: str) -> object:
        done = python(LOAD + code)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_module_of_any_name_with_sources_outside_of_the_folder(folder, answer):
    before = sorted(folder.rglob("*"))
    code = (
        "module = load()\nprint(json.dumps([module.__name__, module.run(8), sys.modules['toy.kernels'] is module]))"
    )
    assert answer(code) == ["toy.kernels", 42, True]
    assert sorted(folder.rglob("*")) == before


def test_an_edit_outside_of_the_folder_is_seen_by_the_next_load(folder, answer):
    code = """first = load()
assert load() is first
header = Path("shared/value.cuh")
header.write_text(header.read_text().replace("42", "43"))
print(json.dumps([load().run(1), first.run(1)]))"""
    assert answer(code) == [43, 42]


def test_counts_and_reports_name_the_files(folder, answer):
    code = """module = load()
with collect_counts(module) as counted:
    module.run(8)
[row] = counted.of("fill_kernel", "global store")
print(json.dumps([row.file, row.line, row.text]))"""
    line = "__global__ void fill_kernel(float* x) { x[threadIdx.x] = value(); }"
    assert answer(code) == ["../shared/fill.cu", 3, line]
    (folder / "shared" / "fill.cu").write_text(KERNEL.replace("x[threadIdx.x] =", "*(float*)nullptr ="))
    code = "try:\n    load().run(8)\nexcept RuntimeError as error:\n    print(json.dumps(str(error)))"
    assert "writes through a null pointer, in ../shared/fill.cu:3 (memory)" in answer(code)


def test_one_of_several_extensions(folder, answer):
    other = 'Extension("other", ["binding.cpp", "other.cu"]),\n])'
    (folder / "toy" / "setup.py").write_text(SETUP.replace("])\n", other))
    (folder / "toy" / "other.cu").write_text(KERNEL.replace('#include "value.cuh"', "#define value() 7"))
    assert answer("load()") == (
        "setup.py of toy fails.\n  error: setup.py has 2 extensions, toy.kernels, other: name one of them"
    )
    assert answer("print(json.dumps([load('other').run(2), load('kernels').run(2)]))") == [7, 42]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("toy/setup.py", "raise RuntimeError('no setup today')", "setup.py of toy fails.\n"),
        ("toy/setup.py", SETUP.replace("fill.cu", "gone.cu"), "does not build: there is no file ../shared/gone.cu"),
        ("shared/fill.cu", KERNEL.replace("value()", "unknown()"), "does not build.\n  ../shared/fill.cu:3:"),
        (
            "shared/value.cuh",
            VALUE.replace("v = 42;", 'asm("wgmma;");'),
            "../shared/value.cuh:1: the emulator does not support",
        ),
        (
            "toy/binding.cpp",
            BINDING.replace("fill(float* x, int", "fill(float* x, long"),
            "undefined symbol: fill(flo",
        ),
    ],
)
def test_what_does_not_build_or_load_is_named(folder, answer, file, text, message):
    (folder / file).write_text(text)
    assert message in answer("load()")


def test_a_folder_without_setup(tmp_path, answer):
    (tmp_path / "toy").mkdir()
    assert answer("load()") == f"{tmp_path / 'toy'} has no setup.py"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_an_extension_of_torch_that_asks_for_a_gpu(tmp_path, python):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "setup.py").write_text("""from pathlib import Path
import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension
here = Path(__file__).resolve().parent
assert torch.cuda.is_available() and CUDA_HOME
setup(name="toy", ext_modules=[CUDAExtension("toy_cuda", [str(path) for path in sorted(here.glob("*.c*"))])],
      cmdclass={"build_ext": BuildExtension})
""")
    (tmp_path / "toy" / "toy.cpp").write_text("""#include <torch/csrc/utils/pybind.h>
at::Tensor twice(at::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
""")
    (tmp_path / "toy" / "toy_kernel.cu").write_text("""#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
__global__ void twice_kernel(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
at::Tensor twice(at::Tensor x) {
  TORCH_CHECK(x.is_cuda());
  auto y = at::empty_like(x);
  twice_kernel<<<1, x.numel()>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
""")
    done = python("import cuemu\ntoy = cuemu.load_extension('toy')\nimport torch\nprint(toy.twice(torch.arange(3.)))")
    assert (done.returncode, done.stdout) == (0, "tensor([0., 2., 4.])\n"), done.stderr
