"""Long launches: after some time, only a sample of their blocks is checked, and the report says so.

The setting makes every launch long, so that the tests do not take seconds each.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from common.emulator import build_program
from common.paths import ROOT, build_cache

pytestmark = pytest.mark.needs("g++")
AFTER = {"EMULATOR_SAMPLE_AFTER": "0.02"}
FOUND_WRONG = 66
NOTE = re.compile(r"  note: (\d+) of the (\d+) blocks of (.+) were checked, those of the first seconds and a sample")
HEAD = """
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
constexpr int kBlocks = 20000, kThreads = 32, kCount = kBlocks * kThreads;
template <typename T>
T* device(int count, int byte = -1) {
  T* made;
  cudaMalloc(&made, count * sizeof(T));
  if (byte >= 0) cudaMemset(made, byte, count * sizeof(T));
  return made;
}
template <typename T>
std::vector<T> host(const T* from, int count) {
  std::vector<T> to(count);
  cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost);
  return to;
}
template <typename T, typename Value>
int count_wrong(const T* from, int count, Value value) {
  const auto all = host(from, count);
  int wrong = 0;
  for (int i = 0; i < count; i++) wrong += all[i] != T(value(i));
  return wrong;
}
"""
FILL = "__global__ void fill(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x; }\n"
FILLED = "[](int i) { return i / kThreads; }"


@functools.cache
def built(kernels: str, main: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "long.cu").write_text(f"{HEAD}{kernels}\nint main() {{\n{textwrap.indent(main, '  ')}\n}}\n")
    return build_program("long.cu", folder, build_cache(), here=folder)


def run(folder: Path, kernels: str, main: str, **settings: str) -> subprocess.CompletedProcess:
    """Runs a program with only these settings."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    program = built(kernels, main, folder / "program")
    return subprocess.run([program], env=others | AFTER | settings, capture_output=True, text=True, timeout=120)


def checked(done: subprocess.CompletedProcess) -> tuple[int, int]:
    """How many blocks were checked, and of how many; fails if the report does not say so once."""
    [note] = [line for line in done.stderr.splitlines() if line.startswith("  note: ")]
    found = NOTE.match(note)
    assert found, done.stderr
    assert note.endswith("EMULATOR_SAMPLE_AFTER=0 checks all")
    return int(found[1]), int(found[2])


# Kernels, the main function, and what it prints.
RIGHT = {
    "each element once": (FILL, f"""int* x = device<int>(kCount);
fill<<<kBlocks, kThreads>>>(x);
printf("%d wrong", count_wrong(x, kCount, {FILLED}));
cudaFree(x);""", "0 wrong"),
    "in two dimensions, with a cluster": (
        """__global__ void __cluster_dims__(2, 1, 1) fill(int* x) {
  x[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = blockIdx.x + blockIdx.y;
}""", """int* x = device<int>(kCount);
fill<<<dim3(100, 200), kThreads>>>(x);
printf("%d wrong", count_wrong(x, kCount, [](int i) { return i / kThreads % 100 + i / kThreads / 100; }));
cudaFree(x);""", "0 wrong"),
    "another kernel reads what no check has seen written": (
        FILL + """__global__ void twice(int* y, const int* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2 * x[kCount - 1 - i];
}""", """int *x = device<int>(kCount), *y = device<int>(1000);
fill<<<kBlocks, kThreads>>>(x);
twice<<<1, kThreads>>>(y, x, 1000);
printf("%d wrong", count_wrong(y, 1000, [](int i) { return 2 * (kBlocks - 1 - i / kThreads); }));
cudaFree(x); cudaFree(y);""", "0 wrong"),
    "shared memory and barriers": ("""__global__ void reverse(int* x) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = tile[kThreads - 1 - threadIdx.x];
}""", """int* x = device<int>(kCount);
reverse<<<kBlocks, kThreads>>>(x);
printf("%d wrong", count_wrong(x, kCount, [](int i) { return kThreads - 1 - i % kThreads; }));
cudaFree(x);""", "0 wrong"),
    "atomics": ("""__global__ void count(int* bins, float* sum) {
  atomicAdd(&bins[threadIdx.x % 8], 1);
  if (threadIdx.x == 0) atomicAdd(sum, 1);
}""", """int* bins = device<int>(8, 0);
float* sum = device<float>(1, 0);
count<<<kBlocks, kThreads>>>(bins, sum);
printf("%d wrong, %g", count_wrong(bins, 8, [](int) { return kCount / 8; }), host(sum, 1)[0]);
cudaFree(bins); cudaFree(sum);""", "0 wrong, 20000"),
    "the last block adds up what the others have released": ("""__device__ unsigned arrived;
__global__ void sum(int* total, int* partial) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = blockIdx.x % 7;
    __threadfence();
    is_last = atomicAdd(&arrived, 1) == gridDim.x - 1;
    if (is_last) {
      __threadfence();
      int all = 0;
      for (int i = 0; i < gridDim.x; i++) all += partial[i];
      *total = all;
    }
  }
}""", """int *total = device<int>(1), *partial = device<int>(kBlocks);
sum<<<kBlocks, kThreads>>>(total, partial);
int expected = 0;
for (int i = 0; i < kBlocks; i++) expected += i % 7;
printf("%d wrong", count_wrong(total, 1, [=](int) { return expected; }));
cudaFree(total); cudaFree(partial);""", "0 wrong"),
    "blocks wait for the one before them": ("""__device__ volatile int done[kBlocks];
__global__ void chain(int* x) {
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0) while (!done[blockIdx.x - 1]) {}
    __threadfence();
    x[blockIdx.x] = blockIdx.x > 0 ? x[blockIdx.x - 1] + 1 : 0;
    __threadfence();
    done[blockIdx.x] = 1;
  }
}""", """int* x = device<int>(kBlocks);
chain<<<kBlocks, kThreads>>>(x);
printf("%d wrong", count_wrong(x, kBlocks, [](int i) { return i; }));
cudaFree(x);""", "0 wrong"),
    "kernels that blocks launch": ("""__global__ void add(int* x, int by) { x[threadIdx.x] += by; }
__global__ void launch(int* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  __syncthreads();
  if (blockIdx.x % 1000 == 999 && threadIdx.x == 0) add<<<1, kThreads>>>(x + blockIdx.x * blockDim.x, 1);
}""", """int* x = device<int>(kCount);
launch<<<kBlocks, kThreads>>>(x);
printf("%d wrong", count_wrong(x, kCount, [](int i) { return i / kThreads % 1000 == 999 ? 2 : 1; }));
cudaFree(x);""", "0 wrong"),
}  # fmt: skip


@pytest.mark.parametrize("cores", ["1", "3"])
@pytest.mark.parametrize("name", RIGHT)
def test_results_are_complete_and_nothing_is_reported(name: str, cores: str, tmp_path: Path) -> None:
    kernels, main, printed = RIGHT[name]
    done = run(tmp_path, kernels, main, EMULATOR_CORES=cores)
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr
    some, every = checked(done)
    assert 0 < some < every
    assert every == 20000
    assert "no problem found" in done.stderr


@pytest.mark.parametrize("name", RIGHT)
def test_every_order_is_right(name: str, tmp_path: Path) -> None:
    kernels, main, printed = RIGHT[name]
    if "before them" in name:
        pytest.skip("blocks may not wait for others in another order")
    done = run(tmp_path, kernels, main, EMULATOR_SEED="20")
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr
    some, every = checked(done)
    assert some < every
    assert "(seed 20)" in done.stderr


def test_all_blocks_are_checked_on_demand(tmp_path: Path) -> None:
    kernels, main, printed = RIGHT["each element once"]
    done = run(tmp_path, kernels, main, EMULATOR_SAMPLE_AFTER="0")
    assert (done.stdout, done.stderr) == (printed, "emulator: 1 launch, no problem found\n")


def test_short_launches_are_checked_to_the_end(tmp_path: Path) -> None:
    done = run(tmp_path, FILL, "int* x = device<int>(320);\nfill<<<10, kThreads>>>(x);\ncudaFree(x);")
    assert done.stderr == "emulator: 1 launch, no problem found\n"


def test_threads_that_run_long_are_checked_for_some_time(tmp_path: Path) -> None:
    """One block: there is no other block that could be left out."""
    kernel = """__global__ void fill(int* x) {
  for (int i = threadIdx.x; i < 10 * kCount; i += blockDim.x) x[i % kCount] = i % kCount;
}"""
    main = """int* x = device<int>(kCount);
fill<<<1, kThreads>>>(x);
printf("%d wrong", count_wrong(x, kCount, [](int i) { return i; }));
cudaFree(x);"""
    done = run(tmp_path, kernel, main)
    assert (done.stdout, done.returncode) == ("0 wrong", 0), done.stderr
    assert checked(done) == (0, 1)


def test_a_barrier_of_the_grid_stays_right(tmp_path: Path) -> None:
    kernel = """__global__ void pass(int* x, int steps) {
  const auto grid = cooperative_groups::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  x[i] = 0;
  for (int step = 0; step < steps; step++) {
    grid.sync();
    const int next = x[(i + 1) % n];
    grid.sync();
    x[i] = next + 1;
  }
}"""
    main = """int *x = device<int>(64), steps = 20000;
void* arguments[] = {&x, &steps};
cudaLaunchCooperativeKernel((void*)pass, dim3(2), dim3(32), arguments, 0, 0);
printf("%d wrong", count_wrong(x, 64, [](int) { return 20000; }));
cudaFree(x);"""
    done = run(tmp_path, kernel, main)
    assert (done.stdout, done.returncode) == ("0 wrong", 0), done.stderr
    assert checked(done) == (0, 2)


# Each mistake is only in blocks that come late; the finding, and whether the others then run at all.
LATE = "if (blockIdx.x < kBlocks - 5000) { x[i] = 1; return; }\n"
WRONG = {
    "the last block has no guard": (
        "__global__ void k(int* x) { const int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = 1; }",
        "k<<<kBlocks, kThreads>>>(device<int>(kCount - 3));",
        "writes past the end of x", "element 639997 of x", False,
    ),
    "the second half of the array is missing": (
        "__global__ void k(int* x) { const int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = 1; }",
        "k<<<kBlocks, kThreads>>>(device<int>(kCount / 2));",
        "writes past the end of x", "element 639968 of x", False,
    ),
    "late blocks overlap with their neighbours": (
        f"__global__ void k(int* x) {{ const int i = blockIdx.x * blockDim.x + threadIdx.x;\n{LATE}"
        "x[i] = 1; if (threadIdx.x == kThreads - 1) x[i + 1] = 2; }",
        "k<<<kBlocks, kThreads>>>(device<int>(kCount + 1));",
        "race on element", "wrote it in long.cu", True,
    ),
    "late blocks read what is uninitialised": (
        f"__global__ void k(int* x, int* y) {{ const int i = blockIdx.x * blockDim.x + threadIdx.x;\n{LATE}"
        "x[i] = y[i]; }",
        "k<<<kBlocks, kThreads>>>(device<int>(kCount), device<int>(kCount));",
        "reads element", "which is uninitialised", True,
    ),
    "late blocks lack a barrier": (
        f"__global__ void k(int* x) {{ const int i = blockIdx.x * blockDim.x + threadIdx.x;\n{LATE}"
        "__shared__ int s[kThreads]; s[threadIdx.x] = 1; x[i] = s[kThreads - 1 - threadIdx.x]; }",
        "k<<<kBlocks, kThreads>>>(device<int>(kCount));",
        "race on s[", "shared memory", True,
    ),
    "the last row of a grid is outside": (
        "__global__ void k(int* x) { x[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = 1; }",
        "k<<<dim3(100, 200), kThreads>>>(device<int>(kCount - 100 * kThreads));",
        "writes past the end of x", "element", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_of_late_blocks_are_found_in_the_sample(name: str, tmp_path: Path) -> None:
    kernel, launch, finding, detail, others_run = WRONG[name]
    done = run(tmp_path, kernel, f"{launch}\ncudaDeviceSynchronize();")
    assert done.returncode == FOUND_WRONG, done.stderr
    assert f"  error: {finding}" in done.stderr
    assert detail in done.stderr
    assert ("the others ran without checks" in done.stderr) is others_run, done.stderr
    assert ("after an error, the others did not run" in done.stderr) is not others_run
    some, every = checked(done)
    assert some < every


def test_what_no_block_has_written_is_still_found(tmp_path: Path) -> None:
    main = """int *x = device<int>(kCount + 100);
fill<<<kBlocks, kThreads>>>(x);
host(x, kCount + 100);"""
    done = run(tmp_path, FILL, main)
    assert "copies its source to the host, but 400 of the 2560400 bytes are uninitialised" in done.stderr, done.stderr
    assert checked(done)[0] < kBlocks


kBlocks = 20000


def test_many_launches_share_the_time(tmp_path: Path) -> None:
    """The note speaks of all long launches. Each leaves the memory as its blocks should."""
    main = f"""int* x = device<int>(kCount);
for (int i = 0; i < 12; i++) fill<<<kBlocks, kThreads>>>(x);
printf("%d wrong", count_wrong(x, kCount, {FILLED}));
cudaFree(x);"""
    done = run(tmp_path, FILL, main)
    assert (done.stdout, done.returncode) == ("0 wrong", 0), done.stderr
    assert "12 long launches of kernel fill were checked" in done.stderr
    some, every = checked(done)
    assert every == 12 * kBlocks
    assert some < every


def test_counts_are_of_all_blocks(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    kernels, main, printed = RIGHT["each element once"]
    done = run(tmp_path, kernels, main, EMULATOR_COUNTS=str(path))
    assert (done.stdout, done.stderr) == (printed, "emulator: 1 launch, no problem found\n")
    assert f'"requests": {kBlocks}' in path.read_text()


def test_a_crash_without_checks_is_reported(tmp_path: Path) -> None:
    """Of the blocks that are not checked, 1 in 1000 writes far past the end."""
    kernel = """__global__ void k(int* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool is_wrong = blockIdx.x > 18000 && blockIdx.x < 19000 && blockIdx.x % 500 == 7;
  x[is_wrong ? i + (1 << 20) : i] = 1;
}"""
    done = run(
        tmp_path, kernel, "int* x = device<int>(kCount);\nk<<<kBlocks, kThreads>>>(x);\ncudaDeviceSynchronize();"
    )
    assert done.returncode == FOUND_WRONG, done.stderr
    assert "kernel k, block (18" in done.stderr or "writes past the end of x" in done.stderr


# run(wrong) launches a kernel twice and returns how many of its elements are wrong.
BINDING = """#include <Python.h>
int count(int);
static PyObject* run(PyObject*, PyObject* arguments) {
  int wrong;
  if (!PyArg_ParseTuple(arguments, "i", &wrong)) return nullptr;
  try {
    return PyLong_FromLong(count(wrong));
  } catch (const std::exception& error) {
    return PyErr_SetString(PyExc_RuntimeError, error.what()), nullptr;
  }
}
static PyMethodDef methods[] = {{"run", run, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "long_run", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_long_run() { return PyModule_Create(&module); }
"""
COUNTING = """#include <cuda_runtime.h>
constexpr int kBlocks = 20000, kThreads = 32;
__global__ void fill(int* x, int last) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[blockIdx.x == gridDim.x - 1 ? i + last : i] = i;
}
int count(int last) {
  int *x, wrong = 0;
  cudaMallocManaged(&x, kBlocks * kThreads * sizeof(int));
  for (int i = 0; i < 2; i++) fill<<<kBlocks, kThreads>>>(x, last);
  cudaDeviceSynchronize();
  for (int i = 0; i < kBlocks * kThreads; i++) wrong += x[i] != i;
  cudaFree(x);
  return wrong;
}
"""


def test_an_extension_says_once_for_each_kernel_what_was_checked(tmp_path: Path) -> None:
    sources = {
        "binding.cpp": f"#include <stdexcept>\n{BINDING}",
        "k.cu": COUNTING,
        "setup.py": "from setuptools import Extension, setup\n"
        'setup(name="long_run", ext_modules=[Extension("long_run", ["binding.cpp", "k.cu"])])\n',
        "run.py": "from pathlib import Path\nfrom common.emulator import load_extension\n"
        "from common.paths import build_cache\nmodule = load_extension(Path.cwd(), cache=build_cache())\n"
        "print(module.run(0))\ntry:\n  module.run(5)\nexcept RuntimeError as error:\n  print(error)\n",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    others = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    environment = others | AFTER | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "run.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wrong, report = done.stdout.split("\n", 1)
    assert wrong == "0"
    assert len(re.findall(r"^emulator: \d+ of the 20000 blocks of kernel fill were checked", done.stderr, re.M)) == 1
    assert "  error: writes past the end of x" in report
    assert re.search(r"^  note: \d+ of the 20000 blocks of kernel fill were checked.*did not run", report, re.M)
