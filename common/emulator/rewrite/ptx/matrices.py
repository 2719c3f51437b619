"""PTX instructions for tensor cores."""

from __future__ import annotations

import re

from .translation import BITS, Instruction, address, call, read, split_vector, write

U32, U64 = BITS[32], BITS[64]
# The operands' types: their shapes, and the types of the sums.
SHAPES = {
    "f16": (("m16n8k8", "m16n8k16"), ("f16", "f32")),
    "bf16": (("m16n8k8", "m16n8k16"), ("f32",)),
    "tf32": (("m16n8k4", "m16n8k8"), ("f32",)),
    "f64": (("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), ("f64",)),
    "s8": (("m8n8k16", "m16n8k16", "m16n8k32"), ("s32",)),
    "u8": (("m8n8k16", "m16n8k16", "m16n8k32"), ("s32",)),
    "e4m3": (("m16n8k16", "m16n8k32"), ("f16", "f32")),
    "e5m2": (("m16n8k16", "m16n8k32"), ("f16", "f32")),
}
# Types that the two operands may mix.
MIXED = ({"s8", "u8"}, {"e4m3", "e5m2"})


def multiply(i: Instruction) -> str:
    """`mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d...}, {a...}, {b...}, {c...}`."""
    words = [each for each in i.modifiers if each not in ("aligned", "row", "col", "satfinite")]
    saturates, layout = "satfinite" in i.modifiers, [each for each in i.modifiers if each in ("row", "col")]
    i.modifiers.clear()
    if len(words) != 5 or layout != ["row", "col"]:
        raise i.unsupported()
    shape, d, a, b, c = words
    is_mixed = a != b and {a, b} not in MIXED
    if (
        is_mixed
        or a not in SHAPES
        or shape not in SHAPES[a][0]
        or not {c, d} <= {*SHAPES[a][1]}
        or len(i.operands) != 4
    ):
        raise i.unsupported()
    register = U64 if a == "f64" else U32
    parts = [split_vector(operand) for operand in i.operands]
    arrays = "".join(
        f"const {register} emulator_{name}[] = {{{', '.join(read(each, register) for each in part)}}}; "
        for name, part in zip("abc", parts[1:], strict=True)
    )
    template = [*re.findall(r"\d+", shape), *(f"::emulator::Element::{each}" for each in (d, a, b, c))]
    multiplied = call("mma", [f"emulator_{name}" for name in "dabc"], *template, str(saturates).lower())
    writes = " ".join(write(each, f"emulator_d[{k}]") for k, each in enumerate(parts[0]))
    return f"{{ {register} emulator_d[{len(parts[0])}]; {arrays}{multiplied}; {writes} }}"


def take_count(i: Instruction) -> int:
    """The number of matrices of `ldmatrix` and `stmatrix`."""
    count = i.take("x1", "x2", "x4")
    is_known = i.take("aligned") and i.take("m8n8") and i.take("shared", "shared::cta") and i.take("b16")
    if not count or not is_known or len(i.operands) != 2:
        raise i.unsupported()
    return int(count[1:])


def load_matrices(i: Instruction) -> str:
    """`ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {a, b, c, d}, [p]`."""
    is_transposed, count = str(i.take("trans") is not None).lower(), take_count(i)
    to = split_vector(i.operands[0])
    if len(to) != count:
        raise i.unsupported()
    loaded = call("ldmatrix", [address(i.operands[1], "shared"), "emulator_d"], str(count), is_transposed)
    writes = " ".join(write(each, f"emulator_d[{k}]") for k, each in enumerate(to))
    return f"{{ {U32} emulator_d[{count}]; {loaded}; {writes} }}"


def store_matrices(i: Instruction) -> str:
    """`stmatrix.sync.aligned.m8n8.x2.shared.b16 [p], {a, b}`."""
    is_transposed, count = str(i.take("trans") is not None).lower(), take_count(i)
    of = split_vector(i.operands[1])
    if len(of) != count:
        raise i.unsupported()
    values = ", ".join(read(each, U32) for each in of)
    stored = call("stmatrix", [address(i.operands[0], "shared"), "emulator_s"], str(count), is_transposed)
    return f"{{ const {U32} emulator_s[] = {{{values}}}; {stored}; }}"


MATRIX = {"mma.sync": multiply, "ldmatrix.sync": load_matrices, "stmatrix.sync": store_matrices}
