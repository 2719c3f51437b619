"""Reads asm statements and writes the C++ that takes their place: inputs, the instructions, outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..tokens import Source
from .arithmetic import ARITHMETIC
from .matrices import MATRIX
from .memory import MEMORY
from .threads import THREADS
from .translation import BITS, PTX, UnsupportedPtx, translate

ASM = ("asm", "__asm__", "__asm")
QUALIFIERS = ("volatile", "__volatile__", "__volatile")
HANDLERS = {**ARITHMETIC, **MEMORY, **THREADS, **MATRIX}
# The value of an operand by the letter of its constraint.
VALUES = {"h": "std::uint16_t", "r": BITS[32], "l": BITS[64], "f": "float", "d": "double"}
REGISTERS = {"h": BITS[16], "r": BITS[32], "l": BITS[64], "f": BITS[32], "d": BITS[64], "n": BITS[64]}
UNINITIALISED = "0x7ffb7ffb7ffb7ffb"


class Operand(NamedTuple):
    """An operand of an asm statement: `"+r"(x)` is read and written."""

    letter: str
    expression: str
    is_read: bool
    is_written: bool


def find_asm(source: Source, device_code: bytearray) -> Iterator[int]:
    """The asm statements that are inline PTX, and not assembly of the host."""
    is_cuda = source.path.endswith((".cu", ".cuh"))
    is_header = source.path.endswith((".h", ".hpp", ".inl"))
    for index in source.find(*ASM):
        if index in source.skipped or not source.is_code(index):
            continue
        if is_cuda or device_code[index] or (is_header and looks_like_ptx(source, index)):
            yield index


def looks_like_ptx(source: Source, index: int) -> bool:
    """Whether the text of an asm statement has an instruction with a type, such as `mov.u32`.

    Macros and functions in a header may be for device code without a qualifier that is defined there.
    """
    closer = next(
        (source.matching[k] for k in (index + 1, index + 2) if source.is_(k, "(") and k in source.matching), 0
    )
    return any(
        source.tokens[k].kind == "string" and re.search(r"\b[a-z]\w*\.[a-z]\w*", source.tokens[k].text)
        for k in range(index, closer)
    )


def translate_asm(source: Source, index: int) -> tuple[int, str]:
    """The `)` that ends the asm statement at a token, and the C++ for the statement.

    Raises `UserError` for an instruction that the emulator does not support.
    """
    opener = index + 1
    while source.is_(opener, *QUALIFIERS):
        opener += 1
    if not source.is_(opener, "(") or opener not in source.matching:
        raise source.error(index, "the emulator cannot read this asm statement")
    closer = source.matching[opener]
    sections = split_sections(source, opener + 1, closer)
    text = read_text(source, index, sections[0])
    outputs = [read_operand(source, each) for each in split_operands(source, sections, 1)]
    operands = [*outputs, *(read_operand(source, each) for each in split_operands(source, sections, 2))]
    try:
        body = translate(text, HANDLERS)
    except UnsupportedPtx as refusal:
        raise source.error(index, str(refusal)) from None
    check_numbers(source, index, text, len(operands))
    before = "".join(declare(number, operand) for number, operand in enumerate(operands))
    after = "".join(
        f" {PTX}output({operand.expression}, emulator_{number});"
        for number, operand in enumerate(operands)
        if operand.is_written
    )
    return closer, f"do {{ {before}{body}{after} }} while (0)"


def split_sections(source: Source, start: int, end: int) -> list[range]:
    """The tokens of the text, the outputs, the inputs and the clobbers, which colons separate."""
    sections, begin, index = [], start, start
    while index < end:
        if source.is_(index, ":", "::"):
            sections.append(range(begin, index))
            begin = index + 1
            if source.is_(index, "::"):
                sections.append(range(begin, begin))
        index = source.after(index)
    return [*sections, range(begin, end)]


def read_text(source: Source, index: int, section: range) -> str:
    """The PTX of a statement: string literals, which C++ joins."""
    for k in section:
        token = source.tokens[k]
        if token.kind != "string" or not re.match(r'R?"', token.text):
            reason = f"the emulator reads inline PTX only from string literals, but here is {token.text}"
            raise source.error(index, reason)
    return "".join(read_literal(source.tokens[k].text) for k in section)


def read_literal(literal: str) -> str:
    """The text of a string literal."""
    if literal.startswith("R"):
        return re.fullmatch(r'R"([^(]*)\((.*)\)\1"', literal, re.DOTALL)[2]
    return ast.literal_eval(literal.replace("\\\n", ""))


def split_operands(source: Source, sections: list[range], number: int) -> Iterator[range]:
    """The operands of a section: each is a constraint and an expression in brackets."""
    section = sections[number] if number < len(sections) else range(0)
    index = section.start
    while index < section.stop:
        yield range(index, source.after(index + 1))
        index = source.after(index + 1) + 1  # behind the comma


def read_operand(source: Source, tokens: range) -> Operand:
    """Reads `"=r"(x)`."""
    constraint = source.tokens[tokens.start].text.strip('"')
    match = re.fullmatch(r"([=+]?)&?([hrlfdn])", constraint)
    if not match or not source.is_(tokens.start + 1, "("):
        raise source.error(tokens.start, f"the emulator does not support the constraint {constraint} of asm")
    expression = source.spelling(tokens.start + 1, tokens.stop)
    return Operand(match[2], expression, match[1] != "=", match[1] != "")


def declare(number: int, operand: Operand) -> str:
    """The variable of an operand."""
    name, register = f"emulator_{number}", REGISTERS[operand.letter]
    if operand.letter == "n":
        return f"[[maybe_unused]] const {register} {name} = {register}{operand.expression}; "
    value = f"{register}({UNINITIALISED}ull)"
    if operand.is_read:
        value = f"{PTX}input<{VALUES[operand.letter]}>({operand.expression})"
    return f"[[maybe_unused]] {register} {name} = {value}; "


def check_numbers(source: Source, index: int, text: str, count: int) -> None:
    """Refuses `%3` if the statement has only three operands, and `%%0`, which is not an operand."""
    if escaped := re.search(r"%%(\d+)", text):
        raise source.error(index, f"inline PTX uses %%{escaped[1]}, which is not an operand: write %{escaped[1]}")
    for number in re.findall(r"(?<!%)%(\d+)", text):
        if int(number) >= count:
            raise source.error(index, f"inline PTX uses %{number}, but the asm statement has {count} operands")
