"""Rewrites host code that takes a tensor's memory, so that a report can name the tensor, its shape and the index.

`x.data_ptr<T>()` becomes `::emulator::tensor("x", x).data_ptr<T>()`, and `at::empty(...)` becomes
`::emulator::fresh(at::empty(...))`. What is no tensor after all passes through both.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import shared
from .expressions import operand_start
from .tokens import Edit, Source

INCLUDE = '#include "emulator/tensor.h"\n'
POINTERS = ("data_ptr", "mutable_data_ptr", "const_data_ptr")
ACCESSORS = ("packed_accessor", "packed_accessor32", "packed_accessor64", "generic_packed_accessor")
EMPTY = ("empty", "empty_like", "empty_strided", "empty_permuted")
NEW_EMPTY = ("new_empty", "new_empty_strided")


def tensors(source: Source, functions: list[shared.Function]) -> list[Edit]:
    """Edits for every call that takes the memory of a tensor or makes one without values, outermost first."""
    edits: list[Edit] = []
    for index in reversed(range(len(source.tokens))):
        if source.tokens[index].kind == "name" and not shared.function_at(index, functions):
            edits += [*memory_of(source, index), *empty(source, index)]
    return edits


def memory_of(source: Source, method: int) -> Iterator[Edit]:
    """Edits of `x.data_ptr<T>()` and its like, if such a method stands here: they name `x`."""
    is_typed = source.is_(method + 1, "<")
    if not source.is_(method, *POINTERS, *ACCESSORS, *(("data",) if is_typed else ())):
        return
    dot = method - 2 if source.is_(method - 1, "template") else method - 1
    if not source.is_(dot, ".", "->") or not (is_typed or source.is_(method + 1, "(")):
        return
    start = operand_start(source, dot)
    if start is None or source.is_(start - 1, "#"):
        return
    inner = start, dot
    while source.is_(inner[0], "(") and source.partner.get(inner[0]) == inner[1] - 1:
        inner = inner[0] + 1, inner[1] - 1
    name = source.quoted(source.spelling(*inner), method)
    is_const = source.is_(method, "const_data_ptr") or (is_typed and source.is_(method + 2, "const"))
    end = source.tokens[dot - 1].end
    yield Edit(source.tokens[start].start, source.tokens[start].start, f"::emulator::tensor({name}, ")
    yield Edit(end, end, ", true)" if is_const else ")")


def empty(source: Source, function: int) -> Iterator[Edit]:
    """Edits of `at::empty(...)` and `x.new_empty(...)`, if such a call begins here."""
    if not source.is_(function + 1, "(") or function + 1 not in source.partner:
        return
    is_function = source.is_(function, *EMPTY) and source.is_(function - 1, "::")
    is_function = is_function and source.is_(function - 2, "at", "torch")
    is_method = source.is_(function, *NEW_EMPTY) and source.is_(function - 1, ".", "->")
    start = operand_start(source, function + 1) if is_function or is_method else None
    if start is None or source.is_(start - 1, "#"):
        return
    end = source.tokens[source.partner[function + 1]].end
    yield Edit(source.tokens[start].start, source.tokens[start].start, "::emulator::fresh(")
    yield Edit(end, end, ")")
