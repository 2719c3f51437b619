"""What only the compiler can refuse, and mistakes with variables of the host and of a thread, and launch bounds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.emulator.tests.nvcc import compile_with_nvcc
from common.paths import ROOT

pytestmark = [pytest.mark.needs("g++"), pytest.mark.proof("refused and found")]
FOUND_WRONG = 66


def emulate(tmp_path: Path, text: str) -> subprocess.CompletedProcess:
    """Runs a program under all checks."""
    (tmp_path / "k.cu").write_text(text)
    command = [sys.executable, "-m", "common.emulator", "run", "k.cu"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)


def launching(kernels: str, call: str) -> str:
    """A program with one launch, which gets memory for 64 floats."""
    return (
        f"#include <cstdio>\n#include <cuda_runtime.h>\n{kernels}\nint main() {{\n  float* d;\n"
        f"  cudaMalloc(&d, 256);\n  cudaMemset(d, 0, 256);\n  {call}\n"
        '  printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));\n  cudaFree(d);\n}\n'
    )


# The kernel in lines from 3 on, the launch, the line of the finding, and the finding.
FOUND = {
    "a static member of a class is read": (
        "struct S { static float table[4]; };\nfloat S::table[4] = {1, 2, 3, 4};\n"
        "__global__ void k(float* o) { o[threadIdx.x] = S::table[threadIdx.x % 4]; }",
        "k<<<1, 32>>>(d);", 5, "reads host memory: S::table, which is not __device__",
    ),
    "a variable of the host is written": (
        "struct S { static int factor; };\nint S::factor = 3;\n__global__ void k() { S::factor = 7; }",
        "k<<<1, 1>>>();", 5, "writes host memory: S::factor, which is not __device__",
    ),
    "a local array is too small": (
        "__global__ void k(float* o, int n) {\n  float best[8];\n  for (int j = 0; j < n; ++j) best[j] = 1;\n"
        "  o[0] = best[1];\n}",
        "k<<<1, 4>>>(d, 12);", 5, "writes past the end of best (8 elements)",
    ),
    "a local array begins later": (
        "__global__ void k(float* o, int n) {\n  float best[8] = {};\n  o[0] = best[n - 1] + best[n];\n}",
        "k<<<1, 4>>>(d, 0);", 5, "reads before the beginning of best (8 elements)",
    ),
    "a member of a structure": (
        "struct P { float u[4], v[4]; };\n__global__ void k(float* o, int n) { P p = {};\n  p.u[n] = 1;\n"
        "  o[0] = p.v[0];\n}",
        "k<<<1, 1>>>(d, 4);", 5, "writes past the end of u (4 elements)",
    ),
    "a row of an array": (
        "__global__ void k(float* o, int n) {\n  int m[2][3] = {};\n  m[0][n] = 4;\n  o[0] = m[1][0];\n}",
        "k<<<1, 1>>>(d, 3);", 5, "writes past the end of m (3 elements)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_is_found_at_its_line(name: str, tmp_path: Path) -> None:
    kernels, call, line, finding = FOUND[name]
    done = emulate(tmp_path, launching(kernels, call))
    assert done.returncode == FOUND_WRONG, done.stderr
    assert f"  error: {finding}, in k.cu:{line} (memory)\n" in done.stderr


RIGHT = {
    "the whole of an array": (
        "__global__ void k(float* o, int n) {\n  float x[8], *end = &x[n];\n  int count = 0;\n"
        "  for (float* p = x; p != end; ++p) *p = 1, ++count;\n  o[0] = count;\n}",
        "k<<<1, 4>>>(d, 8);",
    ),
    "static variables of a kernel": (
        "__global__ void k(float* o) {\n  static int calls = 0;\n  static const float t[2] = {1, 2};\n"
        "  o[0] = ++calls + t[calls % 2];\n}",
        "k<<<1, 1>>>(d);",
    ),
    "variables of the device": (
        "#define GLOBAL __device__\nGLOBAL int count;\n__constant__ float t[2] = {1, 2};\n"
        "template <typename T> __device__ T value = 3;\n"
        "__global__ void k(float* o, int i) { o[0] = t[i] + count + value<float>; }",
        "k<<<1, 1>>>(d, 1);",
    ),
    "numbers of the host": (
        "const int n = 3;\nconstexpr float half = 0.5f;\nstruct S { static constexpr int size = 4; };\n"
        "__global__ void k(float* o) { o[0] = n * half + S::size; }",
        "k<<<1, 1>>>(d);",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_is_no_mistake(name: str, tmp_path: Path) -> None:
    done = emulate(tmp_path, launching(*RIGHT[name]))
    assert done.returncode == 0, done.stderr
    assert "no problem found" in done.stderr


BOUNDED = """template <int N> __global__ void __launch_bounds__(N) t(float* x) { x[threadIdx.x] = 3; }
__global__ void __launch_bounds__(32, 2) k(float* x) { x[threadIdx.x] = 3; }"""


@pytest.mark.parametrize(("call", "allowed"), [("k<<<1, 64>>>(d);", 32), ("t<48><<<1, 64>>>(d);", 48)])
def test_more_threads_than_launch_bounds_are_refused(call: str, allowed: int, tmp_path: Path) -> None:
    asked = "\n  cudaDeviceSynchronize();\n  puts(cudaGetErrorString(cudaGetLastError()));"
    done = emulate(tmp_path, launching(BOUNDED, call + asked))
    assert done.stdout.startswith("invalid argument\n"), done.stdout + done.stderr
    reason = f"is refused: it asks for 64 threads per block; its __launch_bounds__ allow {allowed}"
    assert f"{reason}, in k.cu:9 (launch)" in done.stderr


def test_launch_bounds_are_among_the_attributes(tmp_path: Path) -> None:
    call = (
        "k<<<1, 32>>>(d); t<64><<<1, 64>>>(d);\n  cudaFuncAttributes a; cudaFuncGetAttributes(&a, k);\n"
        "  int grid, block; cudaOccupancyMaxPotentialBlockSize(&grid, &block, k);\n"
        '  printf("%d %d ", a.maxThreadsPerBlock, block);'
    )
    done = emulate(tmp_path, launching(BOUNDED, call))
    assert (done.returncode, done.stdout) == (0, "32 32 no error\n"), done.stderr


STRUCTURE = "struct S { float a; S() { a = 1; } };"
NOT_COMPILED = {
    f"{STRUCTURE}\n__constant__ S s;\n__global__ void k(float* o) {{ o[0] = s.a; }}": (
        "s is a variable of the device: its value must be a constant, not the result of a constructor"
    ),
    "float f() { return 2; }\n__device__ float s = f();\n__global__ void k(float* o) { o[0] = s; }": (
        "s is a variable of the device: its value must be a constant, not the result of a constructor"
    ),
    "template <class T> __global__ void t(T* o) { extern __shared__ T s[]; s[0] = 1; o[0] = s[0]; }\n"
    "__global__ void k(float* o) { o[0] = 1; }\n"
    "void both(float* a, double* b) { t<<<1, 1, 8>>>(a); t<<<1, 1, 8>>>(b); }": (
        "extern __shared__ arrays of one name are one variable, also in a template, so s cannot have two types"
    ),
}


@pytest.mark.parametrize("kernels", NOT_COMPILED)
def test_does_not_compile_and_says_why(kernels: str, tmp_path: Path) -> None:
    done = emulate(tmp_path, launching(kernels, "k<<<1, 1>>>(d);"))
    assert done.returncode == 1
    assert re.search(f"^hint: {re.escape(NOT_COMPILED[kernels])}", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.needs("nvcc")
@pytest.mark.parametrize(
    "kernels", [*NOT_COMPILED, *(FOUND[name][0] for name in FOUND if "host memory" in FOUND[name][3])]
)
def test_nvcc_refuses_it_too(kernels: str, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(kernels)
    assert compile_with_nvcc(tmp_path / "k.cu", tmp_path).returncode != 0
