"""Rewrites what device code calls, or makes, behind the back of the checks: copies of the C library, and the heap."""

from __future__ import annotations

from . import shared
from .tokens import Edit, Source

CALLS = ("memcpy", "memmove", "memset", "malloc", "free")


def calls(source: Source, functions: list[shared.Function]) -> list[Edit]:
    """Edits in device functions: `memcpy(...)` and its like, `new` and `delete` become the emulator's own."""
    edits = []
    for index, token in enumerate(source.tokens):
        if token.kind != "name" or not source.is_(index, *CALLS, "new", "delete"):
            continue
        if shared.function_at(index, functions) is None:
            continue
        if token.text == "new":
            if not source.is_(index + 1, "(") and not source.is_(index - 1, "operator"):
                edits.append(Edit(token.end, token.end, " (::emulator::heap())"))
        elif token.text == "delete":
            edits += deletion(source, index)
        elif source.is_(index + 1, "(") and not is_someone_elses(source, index):
            first = index
            while source.is_(first - 1, "::", "std"):
                first -= 1
            edits.append(Edit(source.tokens[first].start, token.end, f"::emulator::{token.text}"))
    return edits


def is_someone_elses(source: Source, index: int) -> bool:
    """Whether a name is a member, of another namespace, or being declared."""
    before = index - 1
    if source.is_(before, "::"):
        return source.is_name(before - 1) and not source.is_(before - 1, "std", "return", "else")
    if source.is_(before, ".", "->"):
        return True
    return source.is_name(before) and not source.is_(before, "return", "else", "do", "case")


def deletion(source: Source, index: int) -> list[Edit]:
    """Edits that make a function call of `delete p` and of `delete[] p`."""
    of_array = source.is_(index + 1, "[")
    first = index + 3 if of_array else index + 1
    if source.is_(index - 1, "=", "operator") or source.is_(first, ";"):  # `= delete`
        return []
    end = first
    while end < len(source.tokens) and not source.is_(end, ";", ",", ")", "}", "?", ":"):
        end = source.partner.get(end, end) + 1
    name = "delete_array" if of_array else "delete_one"
    start = source.tokens[index].start
    return [
        Edit(start, source.tokens[first - 1].end, f"::emulator::{name}("),
        Edit(source.tokens[end - 1].end, source.tokens[end - 1].end, ")"),
    ]
