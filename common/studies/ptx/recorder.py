"""What a GPU computes with each PTX instruction that the emulator has, to compare the emulator with it.

On a machine with a GPU, `make ptx` records the results in common/emulator/tests/runtime/ptx_results.json. The program
computes each instruction once for each thread of a block, with other inputs in each thread.
"""

from __future__ import annotations

import json
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from ...build import nvcc
from ...errors import UserError
from ...paths import ROOT, display_path

RECORDED = ROOT / "common" / "emulator" / "tests" / "runtime" / "ptx_results.json"
THREADS = 96
TYPES = {"r": "unsigned", "l": "unsigned long long", "f": "float", "d": "double", "h": "unsigned short"}
# A copy of two bytes would be wrong on the GPU: ptxas stores the low byte of a half as a number that it converts.
BITS_OF = {"f": "__float_as_uint", "d": "__double_as_longlong"}
# The inputs by the letter of their constraint: the thread and the operand choose one.
INPUTS = {
    "r": "0u, 1u, 2u, 31u, 33u, 255u, 0x12345678u, 0x7fffffffu, 0x80000000u, 0x89abcdefu, 0xffffffffu",
    "l": "0, 1, 40, 0x123456789abcdefull, 0x7fffffffffffffffull, 0x8000000000000000ull, ~0x123456789abcdefull",
    "f": "0.0f, -0.0f, 1.0f, -1.5f, 1 / 3.0f, 1e-40f, 3.0e38f, -2.5f, 65520.0f, 1.00048828125f, INFINITY, NAN, 0.1f",
    "d": "0.0, -0.0, 1.0, -1.5, 0.1, 1e-310, 1.7e308, 2.5, INFINITY, NAN, 1.0 / 3",
    "h": "0, 0x8000, 0x3c00, 0x3555, 0x0001, 0x7bff, 0xc100, 0x7c00, 0x7e00, 0x2e66, 0x3c01",
}


class Recorded(NamedTuple):
    """An instruction, the letters of its operands, the output first, and how exactly its results are known."""

    text: str
    letters: str
    relative_error: float = 0


def repeat(letters: str, *opcodes: str, error: float = 0) -> list[Recorded]:
    """Instructions with the same operands."""
    operands = ", ".join(f"%{k}" for k in range(len(letters)))
    return [Recorded(f"{opcode} {operands};", letters, error) for opcode in opcodes]


# A GPU computes sines and cosines of larger angles with an error that has no bound.
IN_ONE_TURN = ".reg .f32 x; max.f32 x, %1, 0fC0C90FDB; min.f32 x, x, 0f40C90FDB;"  # from -2 pi to 2 pi

INSTRUCTIONS = [
    *repeat("rrr", "add.u32", "sub.s32", "add.sat.s32", "sub.sat.s32", "mul.lo.u32", "mul.hi.u32", "mul.hi.s32"),
    *repeat("rrr", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "shl.b32", "shr.u32", "shr.s32"),
    *repeat("rr", "not.b32", "cnot.b32", "neg.s32", "abs.s32", "popc.b32", "clz.b32", "brev.b32", "bfind.u32"),
    *repeat("rr", "bfind.s32", "bfind.shiftamt.u32"),
    *repeat(
        "rrrr", "mad.lo.s32", "mad.hi.u32", "bfe.u32", "bfe.s32", "prmt.b32", "shf.l.wrap.b32", "shf.r.clamp.b32"
    ),
    *repeat("rrrrr", "bfi.b32"),
    *repeat("lrr", "mul.wide.u32", "mul.wide.s32"),
    *repeat("lll", "add.u64", "mul.lo.u64", "mul.hi.s64"),
    Recorded("lop3.b32 %0, %1, %2, %3, 0xca;", "rrrr"),
    *repeat("fff", "add.rn.f32", "add.rz.f32", "add.rm.ftz.f32", "add.rp.f32", "add.sat.f32", "sub.rz.f32"),
    *repeat("fff", "mul.rn.f32", "mul.rm.f32", "mul.ftz.sat.f32", "div.rn.f32", "div.rz.f32"),
    *repeat("fff", "min.f32", "max.f32", "min.NaN.f32", "max.NaN.ftz.f32", "copysign.f32"),
    *repeat("ffff", "fma.rn.f32", "fma.rp.f32", "fma.rz.ftz.f32"),
    *repeat("ff", "abs.f32", "neg.ftz.f32", "sqrt.rn.f32", "sqrt.rm.f32", "rcp.rn.f32", "rcp.rz.f32"),
    *repeat("ff", "cvt.rni.f32.f32", "cvt.rmi.ftz.f32.f32", "cvt.sat.f32.f32"),
    *repeat("ff", "ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.f32", "rcp.approx.f32", error=2.0**-20),
    *repeat("ff", "rsqrt.approx.f32", "sqrt.approx.f32", error=2.0**-20),
    *repeat("ff", "tanh.approx.f32", error=2.0**-10),
    *(
        Recorded(f"{{{IN_ONE_TURN} {opcode} %0, x;}}", "ff", 2.0**-20)
        for opcode in ("sin.approx.f32", "cos.approx.f32")
    ),
    *repeat("ddd", "add.rz.f64", "mul.rp.f64", "div.rn.f64", "max.f64"),
    *repeat("dddd", "fma.rm.f64"),
    *repeat("rf", "cvt.rni.s32.f32", "cvt.rzi.u32.f32", "cvt.rmi.s32.f32", "cvt.rpi.ftz.s32.f32", "cvt.rna.tf32.f32"),
    *repeat("lf", "cvt.rzi.s64.f32"),
    *repeat("rd", "cvt.rzi.s32.f64"),
    *repeat("fr", "cvt.rn.f32.u32", "cvt.rz.f32.s32"),
    *repeat("fl", "cvt.rp.f32.u64"),
    *repeat("fd", "cvt.rn.f32.f64", "cvt.rz.f32.f64"),
    *repeat("df", "cvt.f64.f32"),
    *repeat("hf", "cvt.rn.f16.f32", "cvt.rz.f16.f32", "cvt.rn.relu.f16.f32", "cvt.rn.bf16.f32", "cvt.rz.bf16.f32"),
    *repeat("fh", "cvt.f32.f16", "cvt.f32.bf16"),
    *repeat("rff", "cvt.rn.f16x2.f32", "cvt.rz.bf16x2.f32", "cvt.rn.relu.bf16x2.f32"),
    *repeat("hhh", "add.f16", "sub.rn.f16", "mul.sat.f16", "min.f16", "max.NaN.f16", "min.bf16"),
    *repeat("hhhh", "fma.rn.f16", "fma.rn.relu.f16", "fma.rn.bf16"),
    *repeat("hh", "neg.f16", "abs.f16", "neg.bf16"),
    *repeat("rrr", "add.f16x2", "mul.f16x2", "max.bf16x2"),
    *repeat("rrrr", "fma.rn.f16x2", "fma.rn.bf16x2"),
    Recorded("{.reg .pred p; setp.lt.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}", "rff"),
    Recorded("{.reg .pred p; setp.geu.f32 p, %1, %2; selp.u32 %0, 1, 0, p;}", "rff"),
    Recorded("{.reg .pred p; setp.hi.u32 p, %1, %2; selp.u32 %0, 1, 0, p;}", "rrr"),
]


def program_text() -> str:
    """The program that prints a line for each instruction: the bits of the results, thread by thread."""
    lines = ["#include <cmath>", "#include <cstdio>", ""]
    for letter, values in INPUTS.items():
        lines.append(f"__device__ const {TYPES[letter]} inputs_{letter}[] = {{{values}}};")
    for number, one in enumerate(INSTRUCTIONS):
        count = {letter: INPUTS[letter].count(",") + 1 for letter in INPUTS}
        inputs = ", ".join(
            f'"{letter}"(inputs_{letter}[(i / {(1, 3, 7, 2)[k]} + {k}) % {count[letter]}])'
            for k, letter in enumerate(one.letters[1:])
        )
        lines += [
            f"__global__ void instruction_{number}(unsigned long long* out) {{",
            f"  const int i = threadIdx.x;\n  {TYPES[one.letters[0]]} result;",
            f'  asm volatile("{one.text}" : "={one.letters[0]}"(result) : {inputs});',
            f"  out[i] = {BITS_OF.get(one.letters[0], '')}(result);\n}}",
        ]
    lines += ["int main() {", "  unsigned long long* out;", f"  cudaMallocManaged(&out, {THREADS} * sizeof(*out));"]
    for number in range(len(INSTRUCTIONS)):
        lines += [
            f"  instruction_{number}<<<1, {THREADS}>>>(out);",
            "  if (cudaDeviceSynchronize() != cudaSuccess) return 1;",
            f'  for (int i = 0; i < {THREADS}; i++) std::printf("%llx ", out[i]);',
            '  std::puts("");',
        ]
    return "\n".join([*lines, "  cudaFree(out);", "}", ""])


def read_output(output: str) -> dict[str, list[str]]:
    """The results of each instruction in hexadecimal, by its text."""
    rows = output.splitlines()[: len(INSTRUCTIONS)]
    return {one.text: row.split() for one, row in zip(INSTRUCTIONS, rows, strict=True)}


def is_same(one: Recorded, got: str, expected: str) -> bool:
    """Whether two results are the same, or both NaN, or as close as the instruction is exact."""
    if got == expected or one.letters[0] not in "fd":
        return got == expected
    size, form = (4, "f") if one.letters[0] == "f" else (8, "d")
    a, b = (struct.unpack(form, int(bits, 16).to_bytes(size, "little"))[0] for bits in (got, expected))
    if a != a or b != b:
        return a != a and b != b
    return bool(one.relative_error) and abs(a - b) <= one.relative_error * max(abs(b), 1)


def record_results() -> int:
    """Records the results of this machine's GPU; always returns 0."""
    with tempfile.TemporaryDirectory() as work:
        source, program = Path(work) / "ptx_results.cu", Path(work) / "ptx_results"
        source.write_text(program_text())
        done = subprocess.run(
            [nvcc.find_nvcc() or "nvcc", "-arch=native", str(source), "-o", str(program)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise UserError(f"the program of PTX instructions does not compile\n{done.stdout}{done.stderr}")
        output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    RECORDED.write_text(json.dumps(read_output(output), indent=0) + "\n")
    print(f"recorded {len(INSTRUCTIONS)} instructions in {display_path(RECORDED)}")
    return 0
