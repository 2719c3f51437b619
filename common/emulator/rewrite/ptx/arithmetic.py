"""PTX instructions for one thread's registers: arithmetic, comparisons, conversions, moves and branches."""

from __future__ import annotations

from .translation import BITS, TYPES, Instruction, call, name_label, read, split_vector, write

ROUNDINGS = {"rn": "FE_TONEAREST", "rz": "FE_TOWARDZERO", "rm": "FE_DOWNWARD", "rp": "FE_UPWARD"}
WHOLE_ROUNDINGS = {f"{name}i": mode for name, mode in ROUNDINGS.items()}
FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
BITS_TYPES = ("b16", "b32", "b64")
SCOPES = ("cta", "cluster", "gpu", "sys")
COMPARISONS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"),
    *("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"),
)
U32, U64 = BITS[32], BITS[64]

# Instructions whose C++ function has the same parameters. Of each: the types of its operands, where T is that of the
# instruction, and the types that the instruction exists for.
OPERATIONS = {
    "add": ("TT", (*INTEGERS, *FLOATS)),
    "sub": ("TT", (*INTEGERS, *FLOATS)),
    "mul": ("TT", FLOATS),
    "fma": ("TTT", FLOATS),
    "mad": ("TTT", ("f32", "f64")),
    "div": ("TT", (*INTEGERS, "f32", "f64")),
    "rem": ("TT", INTEGERS),
    "min": ("TT", (*INTEGERS, *FLOATS)),
    "max": ("TT", (*INTEGERS, *FLOATS)),
    "neg": ("T", ("s16", "s32", "s64", *FLOATS)),
    "abs": ("T", ("s16", "s32", "s64", *FLOATS)),
    "copysign": ("TT", ("f32", "f64")),
    "sqrt": ("T", ("f32", "f64")),
    "rcp": ("T", ("f32", "f64")),
    "rsqrt": ("T", ("f32", "f64")),
    "sin": ("T", ("f32",)),
    "cos": ("T", ("f32",)),
    "lg2": ("T", ("f32",)),
    "ex2": ("T", ("f32", "f16", "f16x2", "bf16", "bf16x2")),
    "tanh": ("T", ("f32", "f16", "f16x2", "bf16", "bf16x2")),
    "and": ("TT", (*BITS_TYPES, "pred")),
    "or": ("TT", (*BITS_TYPES, "pred")),
    "xor": ("TT", (*BITS_TYPES, "pred")),
    "not": ("T", (*BITS_TYPES, "pred")),
    "cnot": ("T", BITS_TYPES),
    "shl": ("Tu", BITS_TYPES),
    "shr": ("Tu", (*BITS_TYPES, *INTEGERS)),
    "popc": ("T", ("b32", "b64")),
    "clz": ("T", ("b32", "b64")),
    "brev": ("T", ("b32", "b64")),
    "bfe": ("Tuu", ("u32", "s32", "u64", "s64")),
    "bfi": ("TTuu", ("b32", "b64")),
    "bfind": ("T", ("u32", "s32", "u64", "s64")),
    "selp": ("TTp", (*BITS_TYPES, *INTEGERS, "f32", "f64")),
}
# Names that are words of C++, and another name for an operation of floats.
FUNCTIONS = {"and": "and_", "or": "or_", "xor": "xor_", "not": "not_", "mad": "fma"}
WITHOUT_TEMPLATE = {"prmt": 3, "lop3": 4}


def operate(i: Instruction) -> str:
    """An instruction of OPERATIONS."""
    name = i.opcode.split(".")[0]
    if name in ("mul", "mad") and i.take("lo", "hi", "wide"):
        return multiply_integers(i, name)
    kinds, types = OPERATIONS[name]
    ptx_type = i.take_type()
    rounding = i.take(*ROUNDINGS) if ptx_type in FLOATS else None
    if ptx_type not in types or (rounding not in (None, "rn") and ptx_type not in ("f32", "f64")):
        raise i.unsupported()
    i.expect_operands(len(kinds) + 1)
    i.take("approx", "full", "noftz")
    flushes, saturates, is_relu = (i.take(each) for each in ("ftz", "sat", "relu"))
    template = [TYPES[ptx_type]]
    if rounding not in (None, "rn"):
        template.append(ROUNDINGS[rounding])
    if (name in ("min", "max") and i.take("NaN")) or (name == "bfind" and i.take("shiftamt")):
        template.append("true")
    of_kind = {"T": TYPES[ptx_type], "u": U32, "p": "bool"}
    arguments = [read(operand, of_kind[kind]) for operand, kind in zip(i.operands[1:], kinds, strict=True)]
    if flushes:
        arguments = [call("flush", [argument]) for argument in arguments]
    if saturates and ptx_type in INTEGERS:
        if name not in ("add", "sub") or ptx_type != "s32":
            raise i.unsupported()
        return write(i.operands[0], call(f"{name}_saturated", arguments))
    result = call(FUNCTIONS.get(name, name), arguments, *template)
    for is_wanted, function in ((flushes, "flush"), (saturates, "saturate"), (is_relu, "relu")):
        result = call(function, [result]) if is_wanted else result
    return write(i.operands[0], result)


def multiply_integers(i: Instruction, name: str) -> str:
    """`mul.lo.s32`, `mad.wide.u32` and their like."""
    part = next(word for word in i.opcode.split(".") if word in ("lo", "hi", "wide"))
    ptx_type = i.take_type()
    i.expect_operands(3 if name == "mul" else 4)
    if ptx_type not in INTEGERS or (part == "wide" and ptx_type[1:] == "64"):
        raise i.unsupported()
    sum_type = f"{ptx_type[0]}{2 * int(ptx_type[1:])}" if part == "wide" else ptx_type
    types = [ptx_type, ptx_type, sum_type]
    arguments = [read(operand, TYPES[each]) for operand, each in zip(i.operands[1:], types, strict=False)]
    return write(i.operands[0], call(f"{name}_{part}", arguments, TYPES[ptx_type]))


def operate_on_words(i: Instruction) -> str:
    """`prmt.b32` and `lop3.b32`."""
    name = i.opcode.split(".")[0]
    if i.take_type() != "b32":
        raise i.unsupported()
    i.expect_operands(WITHOUT_TEMPLATE[name] + 1)
    return write(i.operands[0], call(name, [read(operand, U32) for operand in i.operands[1:]]))


def shift_funnel(i: Instruction) -> str:
    """`shf.l.wrap.b32 d, low, high, count`."""
    direction, mode = i.take("l", "r"), i.take("wrap", "clamp")
    if i.take_type() != "b32" or not direction or not mode:
        raise i.unsupported()
    i.expect_operands(4)
    function = f"__funnelshift_{direction}{'c' if mode == 'clamp' else ''}"
    return write(i.operands[0], f"::{function}({', '.join(read(operand, U32) for operand in i.operands[1:])})")


def multiply_bytes(i: Instruction) -> str:
    """`dp4a.s32.s32 d, a, b, c`: the sum of four products of bytes."""
    types = [i.take_type(), i.take_type()]
    i.expect_operands(4)
    if types not in (["s32", "s32"], ["u32", "u32"]):
        raise i.unsupported()
    return write(
        i.operands[0], f"::__dp4a({', '.join(read(operand, TYPES[types[0]]) for operand in i.operands[1:])})"
    )


def compare(i: Instruction) -> str:
    """`setp.lt.and.f32 p|q, a, b, c`."""
    comparison, combination, flushes = i.take(*COMPARISONS), i.take("and", "or", "xor"), i.take("ftz")
    ptx_type = i.take_type()
    if not comparison or ptx_type.endswith("x2"):
        raise i.unsupported()
    i.expect_operands(4 if combination else 3)
    arguments = [read(operand, TYPES[ptx_type]) for operand in i.operands[1:3]]
    if flushes:
        arguments = [call("flush", [argument]) for argument in arguments]
    results = ["emulator_is_so", "!emulator_is_so"]
    if combination:
        operator = {"and": "&&", "or": "||", "xor": "!="}[combination]
        results = [f"({result}) {operator} {read(i.operands[3], 'bool')}" for result in results]
    writes = [
        write(each.strip(), f"bool({value})") for each, value in zip(i.operands[0].split("|"), results, strict=False)
    ]
    return f"{{ const bool emulator_is_so = {call(comparison, arguments, TYPES[ptx_type])}; {' '.join(writes)} }}"


def move(i: Instruction) -> str:
    """`mov.b32 a, b`; several registers may be joined into one, `mov.b64 a, {b, c}`, or one split."""
    ptx_type = i.take_type()
    i.expect_operands(2)
    to, of = i.operands
    if of.startswith("{"):
        parts = ", ".join(read(part, U64) for part in split_vector(of))
        return write(to, call("join_registers", [f"{{{parts}}}"], TYPES[ptx_type]))
    if to.startswith("{"):
        names = [f"emulator_part{k}" for k in range(len(split_vector(to)))]
        writes = " ".join(write(part, name) for part, name in zip(split_vector(to), names, strict=True))
        split = call("split_register", [read(of, TYPES[ptx_type]), *names])
        return f"{{ std::uint64_t {', '.join(names)}; {split}; {writes} }}"
    return write(to, read(of, TYPES[ptx_type]))


def convert_8_bits(i: Instruction, pair: str) -> str:
    """`cvt.rn.satfinite.e4m3x2.f32 d, high, low` and `cvt.rn.f16x2.e4m3x2 d, a`."""
    is_e4m3 = str(pair == "e4m3x2").lower()
    if i.take("f16x2"):
        i.take("rn")
        i.expect_operands(2)
        return write(i.operands[0], call("convert_from_8_bits", [read(i.operands[1], BITS[16])], is_e4m3))
    if not (i.take("rn") and i.take("satfinite") and i.take("f32")):
        raise i.unsupported()
    i.expect_operands(3)
    values = [read(operand, "float") for operand in i.operands[1:]]
    return write(i.operands[0], call("convert_to_8_bits", values, is_e4m3))


def convert(i: Instruction) -> str:
    """`cvt.rn.f16.f32` and its like, also of two floats, `cvt.rn.f16x2.f32 d, high, low`."""
    if pair := i.take("e4m3x2", "e5m2x2"):
        return convert_8_bits(i, pair)
    of = i.take_type()
    to = "tf32" if i.take("tf32") else i.take_type()
    rounding, whole = i.take(*ROUNDINGS, "rna"), i.take(*WHOLE_ROUNDINGS)
    flushes, saturates, is_relu = (i.take(each) for each in ("ftz", "sat", "relu"))
    mode = (
        "::emulator::kNearestAway" if rounding == "rna" else {**ROUNDINGS, **WHOLE_ROUNDINGS}.get(rounding or whole)
    )
    is_pair = to in ("f16x2", "bf16x2")
    i.expect_operands(3 if is_pair else 2)
    arguments = [read(operand, TYPES[of]) for operand in i.operands[1:]]
    if flushes:
        arguments = [call("flush", [argument]) for argument in arguments]
    if (is_pair or to == "tf32") and (of != "f32" or not rounding):
        raise i.unsupported()
    if is_pair:
        value = call("convert_pair", arguments, TYPES[to], mode)
    elif to == "tf32":
        value = call("convert_to_tf32", arguments, mode)
    elif saturates and to in (*INTEGERS, "u8", "s8"):
        value, saturates = call("convert_saturated", arguments, TYPES[to], TYPES[of]), None
    elif whole and to == of:
        value = call("round_to_whole", arguments, TYPES[to], mode)
    else:
        if to in FLOATS and rounding is None and "f16" in to and of == "f32":
            raise i.unsupported()
        value = call("convert", arguments, TYPES[to], TYPES[of], *([mode] if mode else []))
    for is_wanted, function in ((flushes, "flush"), (saturates, "saturate"), (is_relu, "relu")):
        value = call(function, [value]) if is_wanted else value
    return write(i.operands[0], value)


def branch(i: Instruction) -> str:
    """`bra label`: a loop may wait for another thread."""
    i.take("uni")
    i.expect_operands(1)
    return f"::emulator::count_poll(); goto {name_label(i.operands[0])};"


def do_nothing(i: Instruction) -> str:
    """Hints, which change no result."""
    i.modifiers.clear()
    return ";"


def trap(i: Instruction) -> str:
    """`trap`."""
    return "::__trap();"


def sleep(i: Instruction) -> str:
    """`nanosleep.u32 t`."""
    i.take_type()
    return f"::__nanosleep({read(i.operands[0], U32)});"


ARITHMETIC = {
    **dict.fromkeys(OPERATIONS, operate),
    **dict.fromkeys(WITHOUT_TEMPLATE, operate_on_words),
    "shf": shift_funnel,
    "dp4a": multiply_bytes,
    "setp": compare,
    "mov": move,
    "cvt": convert,
    "bra": branch,
    "trap": trap,
    "nanosleep": sleep,
    **dict.fromkeys(
        ("griddepcontrol", "prefetch", "prefetchu", "applypriority", "setmaxnreg", "pmevent"), do_nothing
    ),
}
