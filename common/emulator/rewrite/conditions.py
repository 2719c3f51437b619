"""Decides conditions of the preprocessor that depend only on macros of nvcc, the command line and the file itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

ARCHITECTURE = "__CUDA_ARCH__"
ARCHITECTURE_VALUE = 900  # of the emulated device
WORD = re.compile(r"defined\s*\(\s*(\w+)\s*\)|defined\s+(\w+)|[A-Za-z_]\w*|\d[\w']*|&&|\|\||!=|[<>=]=|\S")
NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|[1-9]\d*|0)")
SYMBOLS = {"&&": " and ", "||": " or ", "!": " not ", "true": "1", "false": "0"}
PLAIN = ("(", ")", "<", ">", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%")
Macros = Mapping[str, int]  # numbers, by name


def given_macros(texts: Iterable[str]) -> dict[str, int]:
    """The macros of a command line that are numbers: `NAME=VALUE`, or `NAME`, which is 1."""
    pairs = ((name, value if equals else "1") for name, equals, value in (text.partition("=") for text in texts))
    return {name: int(value, 0) for name, value in pairs if NUMBER.fullmatch(value)}


def is_certain(directive: str, condition: str, value: bool, is_compiled_by_nvcc: bool | None, known: Macros) -> bool:
    """Whether a condition has a value in host code and in device code.

    `directive` is `if`, `elif`, `ifdef` or `ifndef`. `is_compiled_by_nvcc` is None for a header, which may be
    included by any source. `known` are macros of the command line.
    """
    if directive in ("ifdef", "ifndef"):
        condition = f"defined({condition})"
        value = value == (directive == "ifdef")
    return all(decide(condition, is_compiled_by_nvcc, is_device, known) is value for is_device in (False, True))


def decide(condition: str, is_compiled_by_nvcc: bool | None, is_device: bool, known: Macros) -> bool | None:
    """The value of a condition, or None if it depends on other macros."""
    if "||" not in condition and "&&" in condition:
        parts = [decide(part, is_compiled_by_nvcc, is_device, known) for part in condition.split("&&")]
        return False if False in parts else None if None in parts else True
    macros: dict[str, int | None] = {**known, ARCHITECTURE: ARCHITECTURE_VALUE if is_device else None}
    if is_compiled_by_nvcc is not None:
        macros |= dict.fromkeys(("__CUDACC__", "__NVCC__"), 1 if is_compiled_by_nvcc else None)
    try:
        text = "".join(translate(match, macros) for match in WORD.finditer(condition))
        return bool(eval(text, {"__builtins__": {}}))
    except (KeyError, SyntaxError, TypeError, ArithmeticError):
        return None


def translate(match: re.Match[str], macros: dict[str, int | None]) -> str:
    """A word of a condition in Python; `KeyError` if its value is unknown."""
    word, asked = match[0], match[1] or match[2]
    if asked:
        return str(int(macros[asked] is not None))
    if word in SYMBOLS:
        return SYMBOLS[word]
    if word in PLAIN:
        return word
    if word[0].isdigit():
        return str(int(word.replace("'", "").rstrip("uUlL"), 0))
    return str(macros[word] or 0)
