"""What nvcc refuses and g++ would compile: refused in one line, and what nvcc compiles is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common.emulator import UserError
from common.emulator.rewrite import Source, find_spaces, given_macros, rewrite
from common.emulator.tests.nvcc import compile_with_nvcc

BLOCK = re.compile(r"\n---\n")
# Each begins with the reason; the line that is refused ends with a comment.
REFUSED = r"""
// gate is a function for the host: to call it in device code, declare it __device__
float gate(float x) { return x; }
__global__ void k(float* o) { o[0] = gate(1); }  //
---
// gate is a function for the host: to call it in device code, declare it __device__
static inline double gate(double x);
__global__ void k(float* o) { o[0] = gate(1); }  //
---
// gate is a function for the host: to call it in device code, declare it __device__
template <typename T> T gate(T x) { return x; }
__global__ void k(float* o) { o[0] = gate<float>(1) + gate(1); }  //
---
// gate is a function for the host: to call it in device code, declare it __device__
namespace a { float gate(float x) { return x; } }
__global__ void k(float* o) { o[0] = a::gate(1); }  //
---
// gate is a function for the host: to call it in device code, declare it __device__
float gate(float x) { return x; }
__device__ float next(float x) { return gate(x); }  //
__global__ void k(float* o) { o[0] = next(1); }
---
// gate is a function for the host: to call it in device code, declare it __device__
float gate(float x) { return x; }
template <typename T>
__global__ void t(T* o) { o[0] = gate(1); }  //
void f(float* o) { t<<<1, 1>>>(o); }
---
// P::norm is a function for the host: to call it in device code, declare it __device__
struct P { float x; float norm() const { return x; } };
__global__ void k(float* o, P p) { o[0] = p.norm(); }  //
---
// P::norm is a function for the host: to call it in device code, declare it __device__
struct P { float x; float norm() const; };
float P::norm() const { return x; }
__global__ void k(float* o, const P* p) { o[0] = p->norm(); }  //
---
// std::sort is for the host: device code cannot use it
#include <algorithm>
__global__ void k(float* o) { std::sort(o, o + 4); }  //
---
// std::vector is for the host: device code cannot use it
#include <vector>
__global__ void k(float* o) { std::vector<float> x(4); }  //
---
// rand is for the host: device code cannot use it
#include <cstdlib>
__global__ void k(float* o) { o[0] = rand(); }  //
---
// gate is a __device__ function: to call it in host code, declare it __host__ __device__
__device__ float gate(float x) { return x; }
int main() { return gate(2); }  //
---
// gate is a __device__ function: to call it in host code, declare it __host__ __device__
__device__ float gate(float x);
float f() { return 1 + gate(2); }  //
---
// gate is a kernel: a call of it needs <<<grid, block>>>
__global__ void gate(float* x) {}
void f(float* x) { gate(x); }  //
---
// a kernel cannot return a value: make k void
__global__ int k(float* o) { o[0] = 1; return 0; }  //
---
// a kernel cannot return a value: make k void
template <typename T>
static __global__ float* k(float* o) { return o; }  //
void f(float* o) { k<int><<<1, 1>>>(o); }
---
// device code has no exceptions (throw): return an error, or call __trap
#include <stdexcept>
__global__ void k(float* o) { if (!o) throw std::runtime_error("null"); }  //
---
// device code has no exceptions (try): return an error, or call __trap
__global__ void k(float* o) { try { o[0] = 1; } catch (...) { } }  //
---
// a kernel can call only a lambda for the device: write [=] __device__ (...) { ... }, for nvcc with --extended-lambda
template <typename F> __global__ void t(float* o, F f) { o[0] = f(1); }
void g(float* o) { t<<<1, 1>>>(o, [](float x) { return x + 1; }); }  //
---
// a kernel can call only a lambda for the device: write [=] __device__ (...) { ... }, for nvcc with --extended-lambda
template <typename F> __global__ void t(float* o, F f) { o[0] = f(1); }
void g(float* o, float y) { auto f = [=](float x) { return x + y; };
  t<<<1, 1>>>(o, f); }  //
---
// CUDA 13 has no cub::Max: use cuda::maximum<>
#include <cub/cub.cuh>
__global__ void k(float* o) { o[0] = cub::Max()(1.f, 2.f); }  //
---
// CUDA 13 has no thrust::identity: use cuda::std::identity
#include <thrust/functional.h>
thrust::identity<int> same;  //
---
// table is a variable of the host: device code can only use it if it is __device__
static float table[4] = {1, 2, 3, 4};
__global__ void k(float* o) { o[threadIdx.x] = table[threadIdx.x % 4]; }  //
---
// table is a variable of the host: device code can only use it if it is __device__
constexpr float table[4] = {1, 2, 3, 4};
__global__ void k(float* o, int i) { o[0] = table[i]; }  //
---
// factor is a variable of the host: device code can only use it if it is __device__
namespace a { int factor = 3; }
__device__ void change(int n) { a::factor = n; }  //
__global__ void k(float* o) { change(7); }
"""
ACCEPTED = r"""
const int n = 3;
constexpr float half = 0.5f;
enum { kSize = 4 };
struct S { static constexpr int size = 4; };
__global__ void k(float* o) { o[0] = n * half + S::size + kSize; }
---
float x = 1, y[3];
struct S { float x; };
__global__ void k(float* o, S s) { float x = s.x, y = 2; o[0] = x + y; }
---
float x;
typedef struct { float y; } Pair;
float y;
__global__ void k(float* x, Pair pair) { x[0] = pair.y; }
float host() { return x + y; }
---
__device__ float table[4];
__constant__ int factor;
__managed__ float sum;
__global__ void k(float* o) { o[0] = table[factor] + sum; }
---
__device__ float gate(float x) { return x; }
__global__ void k(float* o) { o[0] = gate(1); }
---
__host__ __device__ float gate(float x) { return x; }
__global__ void k(float* o) { o[0] = gate(1); }
float f() { return gate(1); }
---
#define BOTH __host__ __device__
BOTH float gate(float x) { return x; }
__global__ void k(float* o) { o[0] = gate(1); }
float f() { return gate(1); }
---
__device__ float gate(float x);
__global__ void k(float* o) { o[0] = gate(1); }
__device__ float gate(float x) { return x; }
---
float gate(float x) { return x; }
__device__ float gate(int x) { return x; }
__global__ void k(float* o) { o[0] = gate(1); }
---
float gate(float x) { return x; }
__global__ void k(float* o) { auto gate = [](float x) { return x; }; o[0] = gate(1); }
---
float gate(float x) { return x; }
#define gate(x) (x)
__global__ void k(float* o) { o[0] = gate(1); }
---
struct A { __device__ float gate(float x) { return x; } };
struct B { float gate(float x) { return x; } };
__global__ void k(float* o) { o[0] = A().gate(1); }
---
struct P { __device__ float norm() const { return 1; } };
float norm(float x) { return x; }
__global__ void k(float* o) { P p; o[0] = p.norm(); }
---
namespace mine { float max(float a, float b) { return a > b ? a : b; } }
__global__ void k(float* o) { o[0] = max(1, 2); }
float f() { return mine::max(1.f, 2.f); }
---
#ifdef __CUDA_ARCH__
__device__
#endif
float gate(float x) { return x; }
__global__ void k(float* o) { o[0] = 1; }
---
__device__ float gate(float x) { return x; }
template <typename T> float f(T x) { return 1; }
struct S { float gate(float x) { return x; } };
float f() { S s; return s.gate(1); }
---
__device__ float gate(float x) { return x; }
void f(float* o) { auto g = [] __device__ (float x) { return gate(x); }; }
---
__device__ float gate(float x) { return x; }
float f() { auto gate = [](float x) { return x; }; return gate(1); }
---
#include <stdexcept>
__global__ void k(float* o) { o[0] = 1; }
void f(float* o) { if (!o) throw std::runtime_error("null"); k<<<1, 1>>>(o); }
---
__global__ void k(float* o) { o[0] = 1; }
void f(float* o) { void* p[] = {&o}; cudaLaunchKernel((const void*)k, dim3(1), dim3(1), p); }
---
template <typename T> void __global__ k(T* o) { o[0] = 1; }
void f(float* o) { k<<<1, 1>>>(o); }
---
extern "C" __global__ void k(const float* x, unsigned int* o) { o[0] = x[0]; }
---
template <typename F> __global__ void t(float* o, F f) { o[0] = f(1); }
void g(float* o) { t<<<1, 1>>>(o, [=] __device__ (float x) { return x + 1; }); }
---
#if CASE == 1
__global__ int k(float* o) { return 0; }
#else
__global__ void k(float* o) {}
#endif
---
namespace cub_like { struct Max {}; }
cub_like::Max m;
"""


def blocks(text: str) -> list[str]:
    """The sources of a text, which lines of three dashes separate."""
    return BLOCK.split(text.strip("\n"))


def refused() -> list[tuple[str, str]]:
    """The sources that nvcc refuses, with the reason."""
    pairs = (block.split("\n", 1) for block in blocks(REFUSED))
    return [(text, reason.removeprefix("// ")) for reason, text in pairs]


@pytest.mark.parametrize(("text", "reason"), refused())
def test_what_nvcc_refuses_is_refused_at_its_line(text: str, reason: str) -> None:
    line = next(k for k, line in enumerate(text.splitlines(), 1) if line.endswith("//"))
    with pytest.raises(UserError) as error:
        rewrite(Source("k.cu", text))
    assert str(error.value) == f"k.cu:{line}: {reason}"


@pytest.mark.parametrize("text", blocks(ACCEPTED))
def test_what_nvcc_compiles_is_not_refused(text: str) -> None:
    assert rewrite(Source("k.cu", text))


def compiles(text: str, folder: Path) -> bool:
    (folder / "k.cu").write_text(text)
    return compile_with_nvcc(folder / "k.cu", folder, "--extended-lambda").returncode == 0


@pytest.mark.needs("nvcc")
@pytest.mark.parametrize("text", [text for text, _ in refused()])
def test_nvcc_refuses_it_too(text: str, tmp_path: Path) -> None:
    assert not compiles(text, tmp_path)


@pytest.mark.needs("nvcc")
@pytest.mark.parametrize("text", blocks(ACCEPTED))
def test_nvcc_compiles_it_too(text: str, tmp_path: Path) -> None:
    assert compiles(text, tmp_path)


def test_macros_of_the_command_line_decide_what_is_compiled() -> None:
    text = "#if CASE == 1\n__global__ int k(float* o) { return 0; }\n#else\nint x;\n#endif\n"
    assert rewrite(Source("k.cu", text, macros=given_macros(["CASE=2"])))
    with pytest.raises(UserError, match=r"^k.cu:2: a kernel cannot return a value"):
        rewrite(Source("k.cu", text, macros=given_macros(["CASE=1", "NAME=text"])))
    own = f"#define CASE 2\n{text}"  # which value counts is the compiler's to say
    assert rewrite(Source("k.cu", own, macros=given_macros(["CASE=1"])))


def test_given_macros_are_numbers() -> None:
    assert given_macros(["A", "B=0x10", "C=text", "D=-3", "E="]) == {"A": 1, "B": 16, "D": -3}


def test_functions_of_headers_count_too() -> None:
    spaces, _ = find_spaces(Source("gate.h", "#ifndef GATE_H\n#define GATE_H\nfloat gate(float x);\n#endif\n"))
    assert spaces == {"gate": {"host"}}
    with pytest.raises(UserError, match="gate is a function for the host"):
        rewrite(Source("k.cu", "__global__ void k(float* o) { o[0] = gate(1); }"), {}, spaces)
