"""Translates the text of one asm statement: its registers, labels and instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PTX = "::emulator::ptx::"
BITS = {8: "std::uint8_t", 16: "std::uint16_t", 32: "std::uint32_t", 64: "std::uint64_t"}
TYPES = {
    **{f"{kind}{bits}": BITS[bits] for kind in ("b", "u") for bits in BITS},
    **{f"s{bits}": f"std::int{bits}_t" for bits in BITS},
    **{"f16": "__half", "bf16": "__nv_bfloat16", "f16x2": "__half2", "bf16x2": "__nv_bfloat162"},
    **{"f32": "float", "f64": "double", "pred": "bool"},
}
INDICES = {
    **{"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"},
    **{"cluster_ctaid": "::emulator::block_of_cluster()", "cluster_nctaid": "::emulator::cluster_dim()"},
}
SPECIAL_REGISTERS = {
    **{f"%{name}.{axis}": f"{index}.{axis}" for name, index in INDICES.items() for axis in "xyz"},
    "%cluster_ctarank": "::emulator::rank_in_cluster()",
    "%cluster_nctarank": "::__clusterSizeInBlocks()",
    "%laneid": "::emulator::current_lane()",
    "%warpid": f"{PTX}warp_id()",
    "%nwarpid": "((blockDim.x * blockDim.y * blockDim.z + 31) / 32)",
    "%smid": f"{PTX}multiprocessor_id()",
    "%lanemask_eq": "(1u << ::emulator::current_lane())",
    "%lanemask_lt": f"{PTX}lanes_before()",
    "%lanemask_le": f"({PTX}lanes_before() << 1 | 1)",
    "%lanemask_ge": f"(~{PTX}lanes_before())",
    "%lanemask_gt": f"(~{PTX}lanes_before() << 1)",
    **dict.fromkeys(("%clock", "%clock64", "%globaltimer"), f"{PTX}nanoseconds()"),
    "%clock_hi": f"({PTX}nanoseconds() >> 32)",
}
# Of an operand of the asm statement, or of a register that the text declares or the hardware has.
REGISTER = r"%?[A-Za-z_$][\w$]*(?:\.[xyz])?|%\d+"
INTEGER = re.compile(r"-?(?:0[xX][\da-fA-F]+|0[bB][01]+|\d+)U?")
FLOAT_BITS = re.compile(r"0[fF]([\da-fA-F]{8})|0[dD]([\da-fA-F]{16})")
FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][+-]?\d+)?")


class UnsupportedPtx(Exception):
    """Text that the emulator cannot translate; the message is the reason."""


@dataclass
class Instruction:
    """An instruction without its guard. Handlers take the modifiers that they know; what is left is refused."""

    opcode: str
    operands: list[str]
    modifiers: list[str] = field(default_factory=list)

    def take(self, *choices: str) -> str | None:
        """Removes and returns the first modifier that is one of the choices."""
        for modifier in self.modifiers:
            if modifier in choices:
                self.modifiers.remove(modifier)
                return modifier
        return None

    def take_type(self) -> str:
        """Removes and returns the type, which comes last."""
        if not self.modifiers or self.modifiers[-1] not in TYPES:
            raise self.unsupported()
        return self.modifiers.pop()

    def expect_operands(self, *counts: int) -> None:
        """Refuses an instruction with another number of operands."""
        if len(self.operands) not in counts:
            raise UnsupportedPtx(f"the PTX instruction {self.opcode} has {len(self.operands)} operands here")

    def unsupported(self) -> UnsupportedPtx:
        """The refusal of this instruction."""
        return UnsupportedPtx(f"the emulator does not support the PTX instruction {self.opcode}")


def read(operand: str, cpp_type: str) -> str:
    """The value of an operand as a C++ type."""
    if operand.startswith("!"):
        return f"!{read(operand[1:].strip(), cpp_type)}"
    if match := FLOAT_BITS.fullmatch(operand):
        return f"{PTX}get<{cpp_type}>({BITS[32] if match[1] else BITS[64]}(0x{match[1] or match[2]}))"
    if INTEGER.fullmatch(operand):
        return f"{PTX}get<{cpp_type}>(std::uint64_t({operand}))"
    if FLOAT.fullmatch(operand):
        return f"{PTX}constant<{cpp_type}>({operand})"
    return f"{PTX}get<{cpp_type}>({name_register(operand)})"


def name_register(operand: str) -> str:
    """The C++ variable of a register, or the expression of a special one."""
    if operand in SPECIAL_REGISTERS:
        return SPECIAL_REGISTERS[operand]
    if operand == "WARP_SZ":
        return "32u"
    if not re.fullmatch(REGISTER, operand) or "." in operand:
        raise UnsupportedPtx(f"the emulator cannot read the operand {operand} of inline PTX")
    if operand[0] == "%" and operand[1:].isdigit():
        return f"emulator_{operand[1:]}"
    return "emulator_ptx_" + re.sub(r"\W", "_", operand)


def write(operand: str, value: str) -> str:
    """The statement that puts a value into a register; `_` stands for none."""
    return f"static_cast<void>({value});" if operand == "_" else f"{PTX}set({name_register(operand)}, {value});"


def split_vector(operand: str) -> list[str]:
    """The registers of `{a, b}`, or the operand itself."""
    if not operand.startswith("{"):
        return [operand]
    return [part.strip() for part in operand[1:-1].split(",")]


def address(operand: str, space: str) -> str:
    """The pointer that `[register+offset]` means in a state space."""
    match = re.fullmatch(rf"\[\s*({REGISTER})\s*(?:([+-])\s*({REGISTER}|[\w-]+))?\s*\]", operand)
    if not match:
        raise UnsupportedPtx(f"the emulator cannot read the address {operand} of inline PTX")
    offset = read(match[3], "std::int64_t") if match[3] else "0"
    return (
        f"{PTX}pointer<{PTX}StateSpace::{space}>({name_register(match[1])}, {'-' if match[2] == '-' else ''}{offset})"
    )


def translate(text: str, handlers: dict) -> str:
    """The C++ statements of the PTX text of one asm statement."""
    check_registers(text)
    labels = dict.fromkeys(re.findall(r"(?:^|[;{}\n])\s*([A-Za-z_$][\w$]*)\s*:(?!:)", strip_comments(text)))
    body = " ".join(translate_statement(each, handlers) for each in split_statements(text))
    return f"{{ __label__ {', '.join(map(name_label, labels))}; {body} }}" if labels else body


def check_registers(text: str) -> None:
    """Refuses special registers that the emulator does not have."""
    text = strip_comments(text).replace("%%", "%")
    declared = " ".join(re.findall(r"\.reg\s+\.\w+\s+([^;]+)", text))
    for name in re.findall(r"%[A-Za-z_]\w*(?:\.[xyz])?", text):
        if name not in SPECIAL_REGISTERS and name.rstrip("0123456789") not in declared:
            raise UnsupportedPtx(f"the emulator does not support the PTX register {name}")


def strip_comments(text: str) -> str:
    """The text without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def split_statements(text: str) -> Iterator[str]:
    """Statements without `;`, labels with their `:`, and braces that open or close a block."""
    text = strip_comments(text).replace("%%", "%").strip()
    while text:
        if text[0] in "{};":
            piece, text = text[0], text[1:]
        elif label := re.match(r"[A-Za-z_$][\w$]*\s*:(?!:)", text):
            piece, text = label[0], text[label.end() :]
        else:
            piece, _, text = text.partition(";")
        text = text.strip()
        if piece != ";":
            yield " ".join(piece.split())


def translate_statement(statement: str, handlers: dict) -> str:
    """One statement in C++."""
    if statement in "{}":
        return statement
    if statement.endswith(":"):
        return f"{name_label(statement[:-1].strip())}:;"
    guard = re.match(rf"@\s*(!?)\s*({REGISTER})\s+", statement)
    if guard:
        condition = read(guard[1] + guard[2], "bool")
        return f"if ({condition}) {{ {translate_statement(statement[guard.end() :], handlers)} }}"
    opcode, _, rest = statement.partition(" ")
    if opcode == ".reg":
        return declare_registers(*rest.split(maxsplit=1))
    return translate_instruction(Instruction(opcode, split_operands(rest)), handlers)


def name_label(label: str) -> str:
    """The C++ label for a label of PTX."""
    return "emulator_label_" + label.replace("$", "_")


def declare_registers(ptx_type: str, names: str) -> str:
    """The variables for `.reg .b32 a, b<3>`."""
    kind = ptx_type.removeprefix(".")
    if kind not in TYPES:
        raise UnsupportedPtx(f"the emulator does not support PTX registers of type {ptx_type}")
    cpp_type = "bool" if kind == "pred" else BITS[32 if kind.endswith("x2") else int(re.sub(r"\D", "", kind))]
    variables = []
    for name in names.split(","):
        several = re.fullmatch(r"(.*)<(\d+)>", name.strip())
        each = [f"{several[1]}{i}" for i in range(int(several[2]))] if several else [name.strip()]
        variables += map(name_register, each)
    return f"[[maybe_unused]] {cpp_type} {', '.join(variables)};"


def split_operands(text: str) -> list[str]:
    """The operands between commas that are not in brackets."""
    return [each.strip() for each in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text) if each.strip()]


def translate_instruction(instruction: Instruction, handlers: dict) -> str:
    """The call of an instruction's function, by the handler with the longest name that its opcode begins with."""
    words = instruction.opcode.split(".")
    for count in range(len(words), 0, -1):
        handler = handlers.get(".".join(words[:count]))
        if handler:
            instruction.modifiers = words[count:]
            statement = handler(instruction)
            if instruction.modifiers:
                raise instruction.unsupported()
            return statement
    raise instruction.unsupported()


def call(function: str, arguments: Sequence[str], *template: str) -> str:
    """A call of one of the functions for PTX."""
    return f"{PTX}{function}{'<' + ', '.join(template) + '>' if template else ''}({', '.join(arguments)})"
