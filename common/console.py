"""The output of commands: steps with their times, plain tables, and output that waits for its turn."""

from __future__ import annotations

import io
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .emulator import format_table as table

__all__ = ["HeldOutput", "say", "step", "table", "wrapped"]


class HeldOutput(io.TextIOBase):
    """What a thread says while another's output is shown: kept until `release`, and shown at once from then on."""

    def __init__(self) -> None:
        self.lock, self.kept, self.is_released, self.is_dropped = threading.Lock(), [], False, False

    def write(self, text: str) -> int:
        """Keeps or shows a text. After `drop`, raises KeyboardInterrupt, which ends the thread's work."""
        with self.lock:
            if self.is_dropped:
                raise KeyboardInterrupt
            if self.is_released:
                print(text, end="", flush=True)
            else:
                self.kept.append(text)
        return len(text)

    def isatty(self) -> bool:
        """Whether it will be shown on a terminal."""
        return sys.stdout.isatty()

    def release(self) -> None:
        """Shows what was kept, and from now on everything at once."""
        with self.lock:
            print("".join(self.kept), end="", flush=True)
            self.is_released = True

    def drop(self) -> None:
        """Nobody waits for this output any more."""
        with self.lock:
            self.is_dropped = True

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        """What `say` and `step` print in this thread goes here."""
        token = _held.set(self)
        try:
            yield
        finally:
            _held.reset(token)


_held: ContextVar[HeldOutput | None] = ContextVar("held", default=None)


def say(text: str = "") -> None:
    """Prints a line at once, even into a pipe."""
    print(text, file=_held.get(), flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Shows `text` during the work, and afterwards the seconds that it took."""
    output = _held.get() or sys.stdout
    on_terminal = output.isatty()
    if on_terminal:
        print(f"  {text} ...", end="", file=output, flush=True)
    start = time.perf_counter()
    outcome = "failed"
    try:
        yield
        outcome = f"{time.perf_counter() - start:.1f} s"
    finally:
        line = f"{chr(13) if on_terminal else ''}  {text} {'.' * max(3, 60 - len(text))} {outcome}"
        print(line, file=output, flush=True)


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
