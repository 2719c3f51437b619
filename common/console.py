"""The output of commands: steps with their times, and plain tables."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .emulator import format_table as table

__all__ = ["say", "step", "table", "wrapped"]


def say(text: str = "") -> None:
    """Prints a line at once, even into a pipe."""
    print(text, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Shows `text` during the work, and afterwards the seconds that it took."""
    on_terminal = sys.stdout.isatty()
    if on_terminal:
        print(f"  {text} ...", end="", flush=True)
    start = time.perf_counter()
    outcome = "failed"
    try:
        yield
        outcome = f"{time.perf_counter() - start:.1f} s"
    finally:
        print(f"{chr(13) if on_terminal else ''}  {text} {'.' * max(3, 60 - len(text))} {outcome}", flush=True)


def wrapped(text: str, width: int | None = None) -> str:
    """The paragraphs and lists of a Markdown text in lines that fit the terminal; code and tables are left alone."""
    width = width or max(40, min(100, shutil.get_terminal_size((100, 24)).columns))
    return "\n\n".join(_filled(block, width) for block in re.split(r"\n[ \t]*\n", text))


def _filled(block: str, width: int) -> str:
    if block.startswith(("    ", "```", "|")):
        return block
    items = re.split(r"\n(?=(?:[-*]|\d+\.) )", block)
    filled = []
    for item in items:
        mark = re.match(r"(?:[-*]|\d+\.) |", item)[0]
        filled.append(textwrap.fill(
            " ".join(item.split()), width, subsequent_indent=" " * len(mark),
            break_long_words=False, break_on_hyphens=False,
        ))  # fmt: skip
    return "\n".join(filled)
