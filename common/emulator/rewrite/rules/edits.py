"""Edits of a source's text: the results of the rules, and how they are applied."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """A replacement of the text between two offsets."""

    start: int
    end: int
    text: str


def insert(offset: int, text: str) -> Edit:
    """An edit that replaces nothing."""
    return Edit(offset, offset, text)


def apply(edits: list[Edit], text: str) -> str:
    """The edited text; edits at the same place keep their order."""
    pieces, last = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        between = text[last:start]
        blank = " " * (between.endswith(":") and new.startswith("::"))
        pieces += [between, blank, new]
        last = end
    return "".join([*pieces, text[last:]])
