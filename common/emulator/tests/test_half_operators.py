"""The macros that switch off operators and conversions of 16-bit numbers, which torch's build passes to nvcc."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from common.build.nvcc import find_nvcc
from common.emulator import UserError, build_program, load_extension
from common.paths import build_cache

pytestmark = pytest.mark.needs("g++")
HALF, CONVERSIONS, HALF2 = (f"__CUDA_NO_HALF{rest}__" for rest in ("_OPERATORS", "_CONVERSIONS", "2_OPERATORS"))
BFLOAT16 = "__CUDA_NO_BFLOAT16_CONVERSIONS__"
OF_TORCH = (HALF, CONVERSIONS, BFLOAT16, HALF2)
# What a kernel may do only without the macros.
SWITCHED_OFF = (
    "z[i] = x[i] + x[i];",
    "z[i] = -x[i];",
    "z[i] += x[i];",
    "if (x[i] < x[1]) z[i] = x[1];",
    "f[i] = x[i];",
    "z[i] = 1.0f;",
    "f[i] = float(x[i]) + int(x[i]);",
    "z[i] = __half(1.0f);",
    "q[i] = q[i] * q[i];",
    "q[i] = -q[i];",
    "f[i] = b[i];",
    "b[i] = 0.5f;",
)
# What it may do in any case: functions, pairs, and operators of bfloat16, which torch's build does not switch off.
ALLOWED = (
    "z[i] = __hadd(x[i], __hmul(x[1], __hneg(x[2])));",
    "f[i] = __half2float(x[i]) + __bfloat162float(b[i]);",
    "z[i] = __float2half(f[i]); b[i] = __float2bfloat16(f[i]);",
    "z[i] = __hlt(x[i], x[1]) ? hexp(x[i]) : __hmax(x[1], __hfma(x[i], x[1], x[2]));",
    "q[i] = __hmul2(q[i], __floats2half2_rn(f[0], f[1]));",
    "f[i] = __low2float(q[i]) + __half22float2(q[1]).y + __half2int_rn(x[i]);",
    "z[i] = __shfl_xor_sync(0xffffffff, x[i], 1); atomicAdd(&z[0], x[i]);",
    "b[i] = b[i] + b[1]; if (b[i] < b[1]) b[i] = -b[i];",
    'asm("{add.f16 %0, %1, %2;\\n max.f16 %0, %0, %1;}" : "=h"(h[i]) : "h"(h[1]), "h"(h[2]));',
    'asm("{.reg .pred p; setp.lt.f16 p, %1, %2; @p neg.f16 %0, %1;}" : "+h"(h[i]) : "h"(h[1]), "h"(h[2]));',
)


def write_program(path: Path, statements: tuple[str, ...]) -> None:
    """A program with a kernel for each statement, the first in line 11."""
    lines = [
        "#include <cuda_bf16.h>", "#include <cuda_fp16.h>", "#include <cuda_fp8.h>", "#include <mma.h>",
        "struct Arrays {", "  const __half* x;", "  __half* z;", "  __half2* q;",
        "  __nv_bfloat16* b; float* f; unsigned short* h;", "};",
    ]  # fmt: skip
    names = "const __half* x = a.x; __half* z = a.z; __half2* q = a.q; __nv_bfloat16* b = a.b; float* f = a.f;"
    for number, statement in enumerate(statements):
        lines.append(
            f"__global__ void k{number}(Arrays a) {{ const int i = threadIdx.x; {names} "
            f"unsigned short* h = a.h; (void)x, (void)z, (void)q, (void)b, (void)f, (void)h; {statement} }}"
        )
    path.write_text("\n".join([*lines, "int main() { return 0; }\n"]))


def lines_with_errors(folder: Path, statements: tuple[str, ...], macros: tuple[str, ...]) -> set[int]:
    write_program(folder / "k.cu", statements)
    try:
        build_program("k.cu", folder, build_cache(), here=folder, macros=macros)
    except UserError as error:
        return {int(number) - 11 for number in re.findall(r"^k\.cu:(\d+):\d+: error", str(error), re.MULTILINE)}
    return set()


@pytest.mark.parametrize("first", range(0, len(SWITCHED_OFF), 4))
def test_what_the_macros_switch_off_does_not_compile(first: int, tmp_path: Path) -> None:
    statements = SWITCHED_OFF[first : first + 4]
    assert lines_with_errors(tmp_path, statements, OF_TORCH) == set(range(len(statements)))


def test_without_them_all_of_it_compiles(tmp_path: Path) -> None:
    assert lines_with_errors(tmp_path, SWITCHED_OFF + ALLOWED, ()) == set()


def test_functions_stay(tmp_path: Path) -> None:
    assert lines_with_errors(tmp_path, ALLOWED, OF_TORCH) == set()


def test_each_macro_has_its_own_effect(tmp_path: Path) -> None:
    conversions_of_half, of_pairs = "f[i] = x[i];", "q[i] = q[i] * q[i];"
    statements = (conversions_of_half, of_pairs, "f[i] = b[i];")
    for k, macro in enumerate((CONVERSIONS, HALF2, BFLOAT16)):
        assert lines_with_errors(tmp_path, statements, (macro,)) == {k}
    assert lines_with_errors(tmp_path, ("z[i] = x[i] + x[i];",), (HALF, CONVERSIONS)) == {0}


@pytest.mark.needs("nvcc")
def test_nvcc_refuses_and_compiles_the_same(tmp_path: Path) -> None:
    def compile(statements: tuple[str, ...], macros: tuple[str, ...]) -> subprocess.CompletedProcess:
        write_program(tmp_path / "k.cu", statements)
        flags = [*(f"-D{macro}" for macro in macros), "-std=c++17", "-arch=sm_90", "-c", "k.cu", "-o", "k.o"]
        return subprocess.run([find_nvcc(), *flags], cwd=tmp_path, capture_output=True, text=True)

    refused = compile(SWITCHED_OFF, OF_TORCH).stderr
    lines = {int(number) - 11 for number in re.findall(r"^k\.cu\((\d+)\): error", refused, re.MULTILINE)}
    assert lines == set(range(len(SWITCHED_OFF)))
    assert 'no operator "+" matches these operands' in refused
    assert compile(ALLOWED, OF_TORCH).returncode == 0


# An extension without torch's headers, which take most of the time of a build.
BINDING = """#include <Python.h>
float sum();
static PyObject* run(PyObject*, PyObject*) { return PyFloat_FromDouble(sum()); }
static PyMethodDef methods[] = {{"run", run, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "half_sum", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_half_sum() { return PyModule_Create(&module); }
"""
KERNEL = """#include <cuda_fp16.h>
__global__ void add(const __half* x, __half* z) { z[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }
float sum() {
  const __half x = __float2half(1.5f);
  __half z;
  add<<<1, 1>>>(&x, &z);
  return __half2float(z);
}
"""
SETUP = """from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
setup(name="half_sum", ext_modules=[CUDAExtension("half_sum", ["binding.cpp", "k.cu"], extra_compile_args=FLAGS)])
"""


def load_sum(folder: Path, flags: dict, kernel: str = KERNEL):
    for name, text in (("binding.cpp", BINDING), ("k.cu", kernel), ("setup.py", f"FLAGS = {flags}\n{SETUP}")):
        (folder / name).write_text(text)
    return load_extension(folder, cache=build_cache())


def test_an_extension_is_built_with_the_macros_of_torch(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        load_sum(tmp_path, {})
    assert "no match for ‘operator+’" in str(refused.value).replace("'operator+'", "‘operator+’")
    assert (
        "hint: torch's build switches off the operators and conversions of __half: use functions such as __hadd and "
        "__half2float, or pass -U__CUDA_NO_HALF_OPERATORS__ and its like to nvcc"
    ) in str(refused.value)


def test_an_extension_may_switch_them_on(tmp_path: Path) -> None:
    undefined = [f"-U{macro}" for macro in OF_TORCH]
    assert load_sum(tmp_path, {"nvcc": undefined}).run() == 3
    function = KERNEL.replace("x[threadIdx.x] + x[threadIdx.x]", "__hadd(x[threadIdx.x], x[threadIdx.x])")
    assert load_sum(tmp_path, {}, function).run() == 3
