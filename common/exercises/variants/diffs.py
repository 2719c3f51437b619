"""A file as a few changes to another file: how a wrong answer or a broken starter differs from the solution.

A diff holds hunks with a line `@@` between them. A line of a hunk begins with `-` (only in the old text), `+` (only
in the new one) or a space (in both). It has no line numbers: its old lines must occur exactly once in the text.
"""

from __future__ import annotations

import difflib
import re


def apply_diff(text: str, diff: str) -> str:
    """The text with the hunks applied. Raises `ValueError` for a hunk that matches nowhere or more than once."""
    for hunk in re.split(r"^@@\n", diff, flags=re.MULTILINE):
        lines = hunk.splitlines()
        old, new = ("\n".join(line[1:] for line in lines if line[:1] != sign) for sign in "+-")
        places = _places(text, old)
        if len(places) != 1:
            raise ValueError(f"{'not found' if not places else f'{len(places)} times there'}: {old[:100]!r}")
        if old == new:
            raise ValueError(f"changes nothing: {old[:100]!r}")
        start = places[0]
        end = start + len(old)
        if not new and old:
            end += text[end : end + 1] == "\n"
        text = text[:start] + new + text[end:]
    return text


def make_diff(old: str, new: str) -> str:
    """The diff that turns `old` into `new`, with just enough context around each change to find its place."""
    for context in range(20):
        groups = list(_hunks(old, new, context))
        try:
            if apply_diff(old, diff := "@@\n".join(groups)) == new:
                return diff
        except ValueError:
            continue
    raise ValueError("no short diff makes the one of the other")


def _hunks(old: str, new: str, context: int):
    """Each hunk of a diff as text, with this many lines of context."""
    a, b = old.splitlines(), new.splitlines()
    for group in difflib.SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(context):
        lines = []
        for what, a1, a2, b1, b2 in group:
            lines += [f" {line}" for line in a[a1:a2]] if what == "equal" else [
                *(f"-{line}" for line in a[a1:a2]), *(f"+{line}" for line in b[b1:b2])
            ]  # fmt: skip
        yield "".join(f"{line}\n".removeprefix(" \n") or "\n" for line in lines)


def _places(text: str, lines: str) -> list[int]:
    """The offsets at which these whole lines occur in a text."""
    return [hit.start() for hit in re.finditer(rf"^{re.escape(lines)}$", text, flags=re.MULTILINE)] if lines else []
