"""Rewrites `__device__` and `__constant__` variables at file scope: behind each its name is told."""

from __future__ import annotations

from . import shared
from .expressions import operand_start, split
from .tokens import Edit, Source

WORDS = ("__device__", "__constant__")
CLASSES = ("struct", "union", "class", "enum")


def variables(source: Source) -> list[Edit]:
    """Edits behind every declaration of such variables outside of functions and classes."""
    edits, last = [], 0
    for index, token in enumerate(source.tokens):
        if token.text not in WORDS or token.directive or index < last or not shared.is_file_scope(source, index):
            continue
        start, end = shared.declaration_start(source, index), declaration_end(source, index)
        if end is None or is_left_out(source, start, end):
            continue
        names = [name_of(source, piece) for piece in split(source, start, end, templates=True)]
        last = end
        if not names or None in names:
            continue  # a function, or something stranger
        call = "constant" if any(source.is_(k, "__constant__") for k in range(start, end)) else "variable"
        told = "".join(
            f' static const bool emulator_known_{name} = ::emulator::{call}({name}, "{name}");' for name in names
        )
        edits.append(Edit(source.tokens[end].end, source.tokens[end].end, told))
    return edits


def declaration_end(source: Source, index: int) -> int | None:
    """The `;` of the declaration; None for a function with a body."""
    has_parameters, is_assigned, stop = False, False, len(source.tokens)
    while index < stop and not source.is_(index, ";", "}", "operator"):
        if source.is_(index, "="):
            is_assigned = True
        elif source.is_(index, "{") and has_parameters and not is_assigned:
            return None
        elif source.is_(index, "(") and not source.is_(index - 1, *shared.ALIGNMENTS):
            has_parameters = True
        index = source.partner.get(index, index) + 1
    return index if source.is_(index, ";") else None


def is_left_out(source: Source, start: int, end: int) -> bool:
    """Whether something is only declared here, or a template."""
    if any(source.is_(k, "extern", "using", "typedef", "friend", "__shared__") for k in range(start, end)):
        return True
    return source.is_(start - 1, ">") and operand_start(source, start) is not None


def name_of(source: Source, piece: range) -> str | None:
    """The name that a declarator declares: `x[2] = {1, 2}`, `*p`, `(*f)(int)`, `v{1}`; None for a function."""
    index, name = piece.start, None
    while index < piece.stop and not source.is_(index, "="):
        if source.is_(index, "(") and not source.is_(index - 1, *shared.ALIGNMENTS, "decltype"):
            is_pointer = source.is_(index + 1, "*", "&")
            return name_of(source, range(index + 1, source.partner[index])) if is_pointer else None
        if source.is_(index, "{") and not source.is_(index - 1, *CLASSES) and not source.is_(index - 2, *CLASSES):
            break  # an initial value
        if source.is_name(index) and not source.is_(index, *shared.BASIC):
            name = source.tokens[index].text
        index = source.partner.get(index, index) + 1
    return name
