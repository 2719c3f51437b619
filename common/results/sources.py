"""Tells whether a recorded row is up to date with the sources, by hashes of code without comments and layout."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

from .. import stages
from ..key import Key
from ..paths import ROOT
from ..stages import Stage


def hash_stage(stage: Stage) -> str:
    """A hash of the sources that a measurement of the stage depends on, without comments and blank lines."""
    return hash_code(stage.sources, stage.folder)


def hash_code(paths: Iterable[Path], folder: Path = ROOT) -> str:
    """The same hash for any files in a folder."""
    return Key().add_files(paths, folder, read_code).text


def read_code(path: Path) -> str:
    """What of a file can affect a result or a time."""
    text = path.read_text(encoding="utf-8")
    return python_code(text) if path.suffix == ".py" else cpp_code(text) if path.suffix in CPP_SUFFIXES else text


def is_stale(row: dict, result: dict) -> bool:
    """Whether the sources behind a row have changed since. Eager and torch.compile run stage 1's code."""
    stage = stages.find_stage(1 if row["stage"] is None else row["stage"])
    return result["sources"].get(str(stage.number)) != hash_stage(stage)


def python_code(source: str) -> str:
    """Python code without comments, docstrings and blank lines, that is, only what can affect a result or a time."""
    lines = source.splitlines(keepends=True)
    spans = []  # (first line, column, last line, column), lines from 1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            spans.append((*token.start, *token.end))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                start = column(lines, first.lineno, first.col_offset)
                end = column(lines, first.end_lineno, first.end_col_offset)
                spans.append((first.lineno, start, first.end_lineno, end))
    for first, start, last, end in sorted(spans, reverse=True):
        kept = lines[first - 1][:start] + lines[last - 1][end:]
        lines[first - 1 : last] = [kept] + ["\n"] * (last - first)
    return without_blank_lines("".join(lines))


def column(lines: list[str], number: int, offset: int) -> int:
    """A column in characters; `ast` counts bytes of UTF-8."""
    return len(lines[number - 1].encode()[:offset].decode())


CPP_SUFFIXES = (".cpp", ".cu", ".h", ".cuh")
CPP_PARTS = re.compile(
    r"""R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"   # a raw string
      | "(?:\\.|[^"\\\n])*"                            # a string
      | (?<![0-9A-Za-z])'(?:\\.|[^'\\\n])+'            # a character, not the ' in 1'000
      | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)""",
    re.DOTALL | re.VERBOSE,
)


def cpp_code(source: str) -> str:
    """C++ or CUDA without comments, and without whitespace where none is needed: a formatter changes nothing."""
    code = CPP_PARTS.sub(lambda part: " " if part["comment"] else part[0], source)
    return re.sub(r" (?!\w)|(?<!\w) ", "", " ".join(code.split()))


def without_blank_lines(code: str) -> str:
    """The non-empty lines, without trailing spaces."""
    return "\n".join(line.rstrip() for line in code.splitlines() if line.strip())
