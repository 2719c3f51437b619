"""Building for the emulator and running on it: what is rebuilt, and what happens with wrong kernels and sources."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import paths, stages
from common.build import modules, targets
from common.build.library import build_stage
from common.emulator import compilation
from common.errors import UserError
from common.paths import ROOT
from common.stages import Stage

pytestmark = pytest.mark.needs("g++", "setuptools")

SETUP = """from setuptools import Extension, setup
setup(name="toy", ext_modules=[Extension("toy._C", ["csrc/toy.cpp", "csrc/toy_kernel.cu"])], packages=[])
"""
# run("name", count) runs a kernel and returns the last of `count` floats. No torch header, so it builds in a second.
BINDING = """#include <Python.h>
#include <stdexcept>
#include <vector>
void run(const char* kernel, float* x, int count);
static PyObject* run_from_python(PyObject*, PyObject* arguments) {
  const char* kernel;
  int count;
  if (!PyArg_ParseTuple(arguments, "si", &kernel, &count)) return nullptr;
  std::vector<float> x(count, -1);
  try {
    run(kernel, x.data(), count);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  return PyFloat_FromDouble(x.back());
}
static PyMethodDef methods[] = {{"run", run_from_python, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
"""
KERNELS = """#include <cuda_runtime.h>
#include <cstring>
#include <stdexcept>
#include "toy.h"
__global__ void fill(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = ANSWER; }
__global__ void reverse(float* x) {
  __shared__ float tile[1024];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
__global__ void crash(float* x) {
  if (threadIdx.x == 3) x = nullptr;
  *static_cast<volatile float*>(x) = 1;
} __host__ __device__ void five() { throw std::runtime_error("five"); }
__global__ void fail(float*) { if (threadIdx.x == 5) five(); }
__global__ void endless(volatile float* x) { while (x[0] < 0) {} }
__device__ int forever(int depth) { volatile int here[64] = {depth}; return forever(depth + 1) + here[depth % 64]; }
__global__ void deep(float* x) { x[0] = forever(0); }
__device__ __forceinline__ void divide(float* x, volatile int zero) { x[0] = 100 / zero; }
__global__ void divide(float* x) { divide(x, 0); }
#include <sys/mman.h>
float* near_null() {  // as the heap of a Python whose code has a fixed address can be
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  return static_cast<float*>(mmap(reinterpret_cast<void*>(1 << 20), 4096, PROT_READ | PROT_WRITE, flags, -1, 0));
}
#define LAUNCH(kernel, ...) else if (!std::strcmp(name, #kernel)) kernel<<<__VA_ARGS__>>>(x)
void run(const char* name, float* x, int count) {
  if (!std::strcmp(name, "too_many")) fill<<<1, 2048>>>(x);
  else if (!std::strcmp(name, "empty")) fill<<<0, 32>>>(x);
  else if (!std::strcmp(name, "oversized")) fill<<<dim3(1, 65536), 1>>>(x);
  else if (!std::strcmp(name, "greedy")) fill<<<1, 32, 1 << 20>>>(x);
  else if (!std::strcmp(name, "crash_near_null")) crash<<<1, count>>>(near_null());
  LAUNCH(fill, 1, count);
  LAUNCH(reverse, 1, count);
  LAUNCH(crash, 1, count);
  LAUNCH(fail, 1, count);
  LAUNCH(endless, 1, count);
  LAUNCH(deep, 1, count);
  LAUNCH(divide, 1, count);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
"""
# Every way to launch and to declare shared memory; each kernel adds 1 to x[0] for each correct result.
FORMS = r"""#include <cuda_runtime.h>
#include "toy.h"
extern __shared__ float dynamic_memory[];
__shared__ int of_the_file;
template <int N> struct Size { static constexpr int value = N; };
template <typename T> struct Wrap { static constexpr int value = T::value; };
struct Pair { float first; int second; };
__device__ void count(float* x, bool right) { atomicAdd(x, right ? 1.f : -100.f); }
__device__ void keep(int value) { of_the_file = value; }
template <int N> __device__ int* own() { __shared__ int mine; if (threadIdx.x == 0) mine = N; return &mine; }
namespace forms {
template <typename T, int N>
__global__ void __launch_bounds__(256) shared(float* x) {
  __shared__ T tile[N][N + 1], *pointers[N];  __shared__ Pair pair, pairs[2];
  __shared__ __align__(64) char bytes[3];
  __shared__ union { float f; unsigned bits; } both;
  volatile __shared__ T last[(N > 2) ? 1
                                     : 2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < N * (N + 1); i++) (&tile[0][0])[i] = T(i);
    pointers[0] = tile[1];
    pair = {1, 2};
    pairs[1].second = 3;
    both.f = 1;
    last[0] = 5;
    keep(7);
  }
  int *one = own<1>(), *two = own<2>();
  __syncthreads();
  if (threadIdx.x != 33) return;
  count(x, sizeof(tile) == N * (N + 1) * sizeof(T) && tile[1][2] == N + 3 && pointers[0][2] == tile[1][2]);
  count(x, pair.second == 2 && pairs[1].second == 3 && sizeof(pairs) == 2 * sizeof(Pair));
  count(x, reinterpret_cast<unsigned long long>(bytes) % 64 == 0 && both.bits == 0x3f800000);
  count(x, last[0] == 5 && sizeof(last) == sizeof(T) && of_the_file == 7);
  count(x, *one == 1 && *two == 2);
}
}
template <typename T>
__global__ void dynamic(float* x, int size) {
  extern __shared__ __align__(sizeof(double)) unsigned char raw[];
  T* values = reinterpret_cast<T*>(raw);
  values[threadIdx.x] = T(threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) count(x, values[size - 1] == size - 1 && static_cast<void*>(dynamic_memory) == raw);
}
#define TILE(name) __shared__ int name[2]
__global__ void macros(float* x) {
  TILE(a); TILE(b);
  a[0] = 1; b[0] = 2;
  count(x, a[0] == 1 && b[0] == 2);
}
__global__ void plain(float* x) { count(x, true); }
__global__ void pointers(float* x, const int* none, int zero, void (*f)(int)) { count(x, !none && !zero && !f); }
template <typename T> struct Parameters { T* x; int n; };
__global__ void structure(const Parameters<float> p, float y = 2) { count(p.x, p.n == 3 && y == 2); }
#define LAUNCH(kernel, T, ...) \
  kernel<T><<<1, \
              __VA_ARGS__>>>(x, 8)
void run(const char* name, float* host, int) {
  float* x = host;
#ifdef __CUDACC__
  cudaMallocManaged(&x, sizeof(float));
#endif
  x[0] = 0;
  cudaStream_t stream = nullptr;
  forms::shared<float, 3><<<1, 64>>>(x);
  forms::shared<double, (8 >> 1)><<<dim3(1), dim3(64, 1), 0, stream>>>(x);
  [&] { dynamic<float><<<1, 32, 32 * sizeof(float), stream>>>(x, 32); }();
  LAUNCH(dynamic, double, 8, 8 * sizeof(double));
  macros<<<1, 1>>>(x);  // plain<<<1, 1>>>(x);
  auto pointer = plain;
  void (*table[])(float*) = {plain, macros};
  pointer<<<Wrap<Wrap<Size<1>>>::value, 1>>>(x), (plain)<<<1, 1>>>(x);
  for (int i = 0; i < 2; i++) table[i]<<<1 < 2 ? 1 : 2, 1 << 0>>>(x);
  if (name) ::plain
      <<<1,
         Size<1>::value>>>(
          x);
  pointers<<<1, 1>>>(x, 0, 0, NULL), pointers<<<1, 1>>>(x, nullptr, 0, 0);
  auto variable = pointers;
  variable<<<1, 1>>>(x, 0, 0, 0);
  structure<<<1, 1>>>({x, 3}, 2);
  const char* text = R"(plain<<<1, 1>>>(x);)";
  cudaDeviceSynchronize();
  host[0] = x[0] + (text[5] == '<');
}
"""
HEADER = "#define ANSWER 42\n"
# nvcc allows no exceptions in kernels, g++ does.
FOR_NVCC = re.sub(r" __host__ __device__ void five.*|__global__ void fail.*\n|.*LAUNCH\(fail,.*\n", "", KERNELS)


def write(folder: Path, kernels: str = KERNELS, setup: str = SETUP) -> Stage:
    """A stage in a folder."""
    (folder / "csrc").mkdir(parents=True, exist_ok=True)
    (folder / "setup.py").write_text(setup)
    (folder / "csrc" / "toy.cpp").write_text(BINDING)
    (folder / "csrc" / "toy_kernel.cu").write_text(kernels)
    (folder / "csrc" / "toy.h").write_text(HEADER)
    return Stage(78, str(folder), "cell", "Toy", ("cuda", "emulator"))


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> Path:
    """One build folder for the whole file, so that the emulator itself is compiled once."""
    return tmp_path_factory.mktemp("build")


@pytest.fixture(autouse=True)
def _build_folder(builds, monkeypatch) -> None:
    monkeypatch.setenv("BUILD_DIR", str(builds))


@pytest.fixture(scope="module")
def library(builds, tmp_path_factory) -> Path:
    """The kernels above, built for the emulator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BUILD_DIR", str(builds))
        return build_stage(write(tmp_path_factory.mktemp("toy")), "emulator").path


RUN = """import importlib.machinery, importlib.util, json, sys, threading
def load(path):
    loader = importlib.machinery.ExtensionFileLoader("_C", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("_C", path, loader=loader))
    loader.exec_module(module)
    return module
def call(*arguments):
    try:
        answers.append(module.run(*arguments))
    except RuntimeError as error:
        answers.append(str(error))
module, answers = load(sys.argv[1]), []
"""


def in_a_process(library: Path, code: str, *options: str, first: str = "") -> list:
    """Runs code in a process that has loaded the library, and returns its `answers`. The process must succeed."""
    whole = f"{first}\n{RUN}\n{code}\nprint(json.dumps(answers))"
    command = [sys.executable, *options, "-c", whole, str(library)]
    environment = {**os.environ, "EMULATOR_TIMEOUT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_runs_kernels_with_and_without_barriers(library):
    answers = in_a_process(library, "call('fill', 64); call('reverse', 64); call('reverse', 1024)")
    assert answers == [42.0, 0.0, 0.0]


def test_every_way_to_launch_and_to_declare_shared_memory(tmp_path):
    library = build_stage(write(tmp_path, FORMS), "emulator").path
    # 2 x 5 of `shared`, 2 of `dynamic`, 1 of `macros`, 2 + 2 + 1 + 4 launches of others, and the text
    assert in_a_process(library, "call('all', 1)") == [23.0]


@pytest.mark.needs("nvcc")
def test_those_ways_are_those_of_nvcc(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    assert build_stage(write(tmp_path, FORMS), "compile-only").path.exists()


WRONG = {
    "crash": r"(?s)null pointer, in \S*csrc/toy_kernel\.cu:14.*kernel crash.*thread \(3, 0, 0\)",
    "crash_near_null": r"(?s)through a null pointer, in .*kernel crash.*thread \(3, 0, 0\)",
    "fail": r"kernel fail.*thread \(5, 0, 0\).*five",
    "endless": r"kernel endless.*1 second.*EMULATOR_TIMEOUT.*csrc/toy_kernel\.cu:17",
    "deep": r"kernel deep.*stack",
    "divide": r"kernel divide.*zero",
    "too_many": "^invalid argument$",
    "empty": "^invalid argument$",
    "oversized": "^invalid argument$",
    "greedy": "^invalid argument$",
}


@pytest.mark.parametrize("options", [(), ("-X", "faulthandler")], ids=["plain", "faulthandler"])
def test_a_wrong_kernel_is_named_and_the_process_lives(library, options):
    code = f"for name in {list(WRONG)}: call(name, 32); call('reverse', 32)"
    answers = in_a_process(library, code, *options)
    assert answers[1::2] == [0.0] * len(WRONG)
    for answer, pattern in zip(answers[::2], WRONG.values(), strict=True):
        assert re.search(pattern, answer)


def test_a_wrong_kernel_in_another_thread_of_the_process(library):
    code = """
for name in ("crash", "deep", "reverse"):
    thread = threading.Thread(target=call, args=(name, 32))
    thread.start()
    thread.join()
"""
    crash, deep, reverse = in_a_process(library, code)
    assert re.search(WRONG["crash"], crash)
    assert re.search(WRONG["deep"], deep)
    assert reverse == 0.0


def test_two_extensions_with_kernels_of_the_same_names(library, tmp_path):
    other = build_stage(write(tmp_path, KERNELS.replace("= ANSWER", "= ANSWER + 1")), "emulator").path
    code = f"call('fill', 3); module = load({str(other)!r}); call('fill', 3); call('crash', 32); call('fill', 3)"
    answers = in_a_process(library, code)
    assert (answers[0], answers[1], answers[3]) == (42.0, 43.0, 43.0)
    assert "kernel crash" in answers[2]


def test_an_edit_of_one_file_compiles_one_file(tmp_path, library):
    objects = paths.build_dir() / "objects"

    def compiled(stage: Stage) -> int:
        before = set(objects.iterdir())
        assert not build_stage(stage, "emulator").cached
        return len(set(objects.iterdir()) - before)

    stage = write(tmp_path, KERNELS.replace("= ANSWER", "= ANSWER + 2"))
    assert compiled(stage) == 1
    assert build_stage(stage, "emulator").cached
    (stage.folder / "csrc" / "toy.h").write_text("#define ANSWER 43\n")
    assert compiled(stage) == 1  # the binding does not include the edited header
    (stage.folder / "csrc" / "toy.cpp").write_text(BINDING + "\n")
    assert compiled(stage) == 1


def test_headers_are_found_and_rewritten_in_folders_that_setup_names(tmp_path):
    setup = SETUP.replace('.cu"]', '.cu"], include_dirs=["h"]')
    stage = write(tmp_path, KERNELS.replace('"toy.h"', "<deep/toy.h>"), setup)
    (tmp_path / "h" / "deep").mkdir(parents=True)
    (tmp_path / "h" / "deep" / "toy.h").write_text('#include "more.h"\n')
    more = "#define ANSWER (three())\n__device__ int three() { __shared__ int x; return x = 3; }\n"
    (tmp_path / "h" / "deep" / "more.h").write_text(more)
    (tmp_path / "csrc" / "notes.cu").write_text("__managed__ int what_setup_does_not_name;\n")
    assert in_a_process(build_stage(stage, "emulator").path, "call('fill', 3)") == [3.0]


def test_a_copy_of_a_stage_compiles_nothing_again(library, tmp_path):
    before = set((paths.build_dir() / "objects").iterdir())
    stage = write(tmp_path)
    (tmp_path / "setup.py").write_text(SETUP + "# a copy\n")
    assert not build_stage(stage, "emulator").cached
    assert set((paths.build_dir() / "objects").iterdir()) == before


def test_a_source_outside_of_the_folder_is_refused(tmp_path):
    (tmp_path / "other.cu").write_text("")
    stage = write(tmp_path / "toy", setup=SETUP.replace("csrc/toy_kernel.cu", "../other.cu"))
    with pytest.raises(UserError, match=r"\.\./other\.cu is outside of the stage's folder"):
        build_stage(stage, "emulator")


def test_nothing_is_written_beside_the_sources(tmp_path):
    stage = write(tmp_path, KERNELS + "\n")
    before = sorted(tmp_path.rglob("*"))
    build_stage(stage, "emulator")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("target", ["emulator", pytest.param("compile-only", marks=pytest.mark.needs("nvcc"))])
def test_a_compile_error_shows_the_learners_line_once(tmp_path, target):
    line = 1 + KERNELS[: KERNELS.index("__syncthreads();")].count("\n")
    with pytest.raises(UserError) as error:
        build_stage(write(tmp_path, KERNELS.replace("__syncthreads();", "undeclared();")), target)
    shown = str(error.value).splitlines()
    assert shown[0] == "stage 78 does not build."
    assert re.match(rf"  csrc/toy_kernel\.cu(:{line}:|\({line}\)).*error.*undeclared", shown[1])
    assert sum("error" in line and "undeclared" in line for line in shown) == 1
    assert not list(paths.build_dir().glob("*/*.unfinished"))


def test_an_error_in_a_header_shows_its_line(tmp_path):
    stage = write(tmp_path)
    (tmp_path / "csrc" / "toy.h").write_text("#define ANSWER 42\nint x = undeclared;\n")
    with pytest.raises(UserError, match=r"\n  csrc/toy\.h:2:.*undeclared"):
        build_stage(stage, "emulator")


def test_an_unsupported_feature_is_refused_in_one_line(tmp_path):
    stage = write(tmp_path, KERNELS.replace("__syncthreads();", 'asm("wgmma;");'))
    with pytest.raises(UserError) as error:
        build_stage(stage, "emulator")
    assert str(error.value) == (
        "stage 78 does not build.\n  csrc/toy_kernel.cu:9: the emulator does not support the PTX instruction wgmma"
    )
    assert not list(paths.build_dir().glob("*/*.unfinished"))


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        ("from setuptools import setup\nsetup(name='toy', ext_modules=[", "SyntaxError"),
        ("raise RuntimeError('no setup today')", "no setup today"),
        ("x = 1", "setup"),
        (SETUP.replace("toy_kernel.cu", "missing.cu"), r"cannot read csrc/missing\.cu: No such file"),
        (SETUP.replace("toy._C", "toy.other"), "setup.py has no extension whose name ends in _C"),
    ],
)
def test_a_broken_setup_is_named(tmp_path, setup, message):
    with pytest.raises(UserError, match=message):
        build_stage(write(tmp_path, setup=setup), "emulator")


def test_macros_and_flags_of_setup_reach_the_compilers(tmp_path):
    flags = (
        """define_macros=[("A", "1"), ("B", None)], extra_compile_args={"cxx": ["-DC=3"], "nvcc": ["-DD", "-O9"]}"""
    )
    kernels = "#if A != 1 || !defined(B) || !defined(D) || defined(C)\n#error flags\n#endif\n" + KERNELS
    stage = write(tmp_path, kernels, SETUP.replace('.cu"]', f'.cu"], {flags}'))
    binding = "#if A != 1 || !defined(B) || defined(D) || C != 3\n#error flags\n#endif\n" + BINDING
    (tmp_path / "csrc" / "toy.cpp").write_text(binding)
    build_stage(stage, "emulator")


CUDA_SETUP = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="toy", packages=[], cmdclass={"build_ext": BuildExtension},
      ext_modules=[CUDAExtension("toy._C", ["csrc/toy.cpp", "csrc/toy_kernel.cu"])])
"""


def without_cuda(monkeypatch, tmp_path: Path) -> None:
    """Hides nvcc and CUDA's headers: the PATH has links to all programs except those of CUDA."""
    links = tmp_path / "bin"
    links.mkdir()
    for folder in reversed(os.environ["PATH"].split(":")):
        for program in Path(folder).glob("*") if Path(folder).is_dir() else []:
            if "cuda" not in str(program.resolve()) and program.name != "nvcc":
                (links / program.name).unlink(missing_ok=True)
                (links / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(links))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "no-cuda"))
    for name in ("CUDA_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)


def test_without_nvcc_and_cuda_headers(tmp_path, monkeypatch):
    without_cuda(monkeypatch, tmp_path)
    assert shutil.which("nvcc") is None
    assert targets.why_unavailable("compile-only") == "no nvcc; `make doctor` says what to install"
    path = build_stage(write(tmp_path / "toy", KERNELS + "\n\n", CUDA_SETUP), "emulator").path
    needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
    assert "NEEDED" in needed
    assert not re.search(r"NEEDED.*cuda", needed)
    assert in_a_process(path, "call('reverse', 32)", first="import torch") == [0.0]


def test_headers_of_cuda_itself_are_never_used(tmp_path):
    (tmp_path / "cuda_runtime.h").write_text("")
    assert not compilation.is_usable(tmp_path)
    assert not compilation.is_usable(tmp_path / "missing")
    assert compilation.is_usable(compilation.PACKAGE)


def test_a_compiler_without_cpp20_is_named(monkeypatch, tmp_path):
    old = tmp_path / "g++-9"
    old.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'g++-9 9.4' || exit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    assert "supports C++20 (g++ 11 or newer)" in targets.why_unavailable("emulator")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX")
    with pytest.raises(UserError, match="cannot build stage 78 for emulator: found no C"):
        build_stage(Stage(78, str(tmp_path), "cell", "Toy", ("emulator",)), "emulator")


@pytest.mark.needs("nvcc")
def test_compile_only_reports_each_architecture(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0;9.0")
    made = build_stage(write(tmp_path, FOR_NVCC), "compile-only")
    seconds = json.loads(made.path.read_text())
    assert list(seconds) == ["sm_80", "sm_90"]
    assert all(0 < taken < made.seconds for taken in seconds.values())
    again = build_stage(write(tmp_path, FOR_NVCC), "compile-only")
    assert again.cached
    assert again.path == made.path


@pytest.mark.needs("nvcc")
def test_compile_only_names_the_architecture_that_lacks_something(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0;8.0")
    kernels = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900\n#error too old\n#endif\n" + FOR_NVCC
    with pytest.raises(UserError) as error:
        build_stage(write(tmp_path, kernels), "compile-only")
    assert "too old" in str(error.value)
    assert "csrc/toy_kernel.cu does not compile for sm_80" in str(error.value)
    assert "sm_90" not in str(error.value)


@pytest.mark.needs("nvcc")
def test_compile_only_takes_every_architecture_that_nvcc_and_torch_know(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    from common.build import nvcc
    from common.emulator import read_setup

    offered = nvcc.supported_architectures()
    with (tmp_path / "log.txt").open("w") as log:
        known = read_setup(write(tmp_path / "toy").folder, tmp_path, log, {}, [*offered, "99.9"]).architectures
    assert known
    assert {name.replace(".", "") for name in offered} >= {name.removeprefix("sm_") for name in known}


@pytest.mark.needs("nvcc", "gpu")
def test_the_same_sources_run_on_a_gpu(tmp_path):
    host = """
void run_there(const char* name, float* x, int count);
void run(const char* name, float* host, int count) {
  float* x;
  if (cudaMalloc(&x, count * sizeof(float)) != cudaSuccess) throw std::runtime_error("no memory");
  run_there(name, x, count);
  cudaMemcpy(host, x, count * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(x);
}
"""
    kernels = FOR_NVCC.replace("void run(", "void run_there(") + host
    path = build_stage(write(tmp_path, kernels, CUDA_SETUP), "cuda").path
    answers = in_a_process(path, "call('fill', 64); call('reverse', 64); call('too_many', 64)", first="import torch")
    assert answers == [42.0, 0.0, "invalid argument"]
    path = build_stage(write(tmp_path, FORMS, CUDA_SETUP), "cuda").path
    assert in_a_process(path, "call('all', 1)", first="import torch") == [23.0]


def test_no_line_of_a_stage_is_there_for_the_emulator():
    """A branch on `__has_include` is for the CPU build, which g++ compiles without CUDA; the emulator has the header.

    Branches on the kind of CPU, on OpenMP and on the architecture of the GPU are allowed, too: the emulator has one.
    """
    of_cpu = r"#if (__has_include\(<cuda_runtime\.h>\)|defined\(__x86_64__\))|#ifdef (_OPENMP|__x86_64__)"
    of_vectors = r"#ifndef __AVX\w*__(?= *//|$)"  # what stands behind it is searched, too
    of_gpu = r"#if __CUDA_ARCH__ >= \d+|#ifdef __CUDA_ARCH__"
    for stage in stages.STAGES:
        if stage.is_here and "emulator" in stage.targets:
            for path in [stage.folder / "setup.py", *filter(Path.is_file, (stage.folder / "csrc").rglob("*"))]:
                text = re.sub(f"^(({of_cpu}|{of_gpu})$|{of_vectors})", "", path.read_text(), flags=re.MULTILINE)
                found = re.search(r"(?i)emulat|^\s*#\s*if|__CUDA_ARCH__|__CUDACC__|__NVCC__", text, re.M)
                assert not found, f"{path.relative_to(ROOT)}: {found}"


@pytest.mark.syllabus("3.5b")
def test_a_symbol_that_nothing_defines_is_named_as_in_the_source(tmp_path, monkeypatch):
    stage = write(tmp_path, KERNELS.replace("void run(", "template <typename T>\nvoid run("))
    monkeypatch.setattr(stages, "STAGES", (stage,))
    (tmp_path / "README.md").write_text("# Toy\n")
    with pytest.raises(
        UserError, match=r"builds, but does not load: .*undefined symbol: run\(char const\*, float\*, int\)"
    ):
        modules.load_stage(78, "emulator")
