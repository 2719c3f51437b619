"""One program of the study."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple


class Program(NamedTuple):
    """A program of a repository: its source files, the first of which names it, and how it is built and run.

    `include_dirs` are relative to the repository's folder. `smaller` has texts of the sources and what replaces them:
    sizes with which it would compute for hours on a CPU, and for two files BFLOAT16.
    """

    repository: str
    sources: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    smaller: tuple[tuple[str, str], ...] = ()
    include_dirs: tuple[str, ...] = ()
    compiler_flags: tuple[str, ...] = ()  # for g++
    standard: str = "c++17"
    devices: int = 1  # that it needs
    title: str = ""  # if the name of the first source file would not be the only one

    @property
    def name(self) -> str:
        """The title, or the name of the first source file; and the arguments: "sgemm 3"."""
        return " ".join((self.title or PurePosixPath(self.sources[0]).stem, *self.arguments))
