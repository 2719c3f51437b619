"""Statements of device code that g++ would compile for the host: the C library's calls, the heap, and inline PTX."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..expressions import find_operand
from ..ptx.assembly import find_asm, translate_asm
from ..syntax import Syntax
from ..tokens import Source
from .edits import Edit, insert

# Types of CUDA to which torch's own types convert, by an operator that their headers declare only for nvcc.
SIXTEEN_BITS = ("__half", "__nv_bfloat16")
C_LIBRARY = ("memcpy", "memmove", "memset", "malloc", "free", "clock")


def rewrite_assembly(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """Each asm statement becomes calls of the functions for its PTX instructions."""
    for index in find_asm(source, syntax.device_code):
        closer, text = translate_asm(source, index)
        start, end = source.tokens[index].start, source.tokens[closer].end
        line_breaks = "".join(re.findall(r"\\?\n", source.text[start:end]))
        yield Edit(start, end, text + line_breaks)


def rewrite_device_calls(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """In device code, `memcpy` and its like, `new` and `delete` become the emulator's own, which are checked."""
    for index in source.find(*C_LIBRARY, "new", "delete"):
        token = source.tokens[index]
        if not syntax.device_code[index]:
            continue
        if token.text == "new":
            if not source.is_(index + 1, "(") and not source.is_(index - 1, "operator"):
                yield insert(token.end, " (::emulator::heap())")
        elif token.text == "delete":
            yield from rewrite_delete(source, index)
        elif source.is_(index + 1, "(") and is_c_library_name(source, index):
            first = index
            while source.is_(first - 1, "::", "std"):
                first -= 1
            yield Edit(source.tokens[first].start, token.end, f"::emulator::{token.text}")


def is_c_library_name(source: Source, index: int) -> bool:
    """Whether a name is not a member, of a namespace other than `std`, or being declared."""
    before = index - 1
    if source.is_(before, "::"):
        return not source.is_name(before - 1) or source.is_(before - 1, "std", "return", "else")
    if source.is_(before, ".", "->"):
        return False
    return not source.is_name(before) or source.is_(before, "return", "else", "do", "case")


def rewrite_delete(source: Source, index: int) -> Iterator[Edit]:
    """`delete p` and `delete[] p` become function calls."""
    is_array = source.is_(index + 1, "[")
    first = index + 3 if is_array else index + 1
    if source.is_(index - 1, "=", "operator") or source.is_(first, ";"):  # `= delete`
        return
    end = first
    while end < len(source.tokens) and not source.is_(end, ";", ",", ")", "]", "}", "?", ":"):
        end = source.after(end)
    name = "delete_array" if is_array else "delete_one"
    yield Edit(source.tokens[index].start, source.tokens[first - 1].end, f"::emulator::{name}(")
    yield insert(source.tokens[end - 1].end, ")")


def rewrite_conversions(source: Source) -> Iterator[Edit]:
    """`x.operator __half()`, which torch's extensions call on `at::Half`, becomes a cast."""
    for index in source.find("operator"):
        is_call = source.is_(index - 1, ".") and source.is_(index + 1, *SIXTEEN_BITS) and source.is_(index + 2, "(")
        start = find_operand(source, index - 1) if is_call else None
        if start is not None:
            kind = source.tokens[index + 1].text
            yield insert(source.tokens[start].start, f"static_cast<{kind}>(")
            yield Edit(source.tokens[index - 1].start, source.tokens[source.after(index + 2) - 1].end, ")")
