"""Searches in a learner's source: removes comments first, so that text in a comment is not taken for code."""

from __future__ import annotations

import re

CPP = re.compile(
    r"""
    (?P<keep>\#[ \t]*include[^\n]*)
    | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<string>R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
    """,
    re.VERBOSE | re.DOTALL,
)
PYTHON = re.compile(
    r'''
    (?P<comment>\#[^\n]*)
    | (?P<string>""".*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    ''',
    re.VERBOSE | re.DOTALL,
)
# A function for the GPU, with at most two blocks within each other.
ON_THE_GPU = r"__(?:global|device)__[^{;]*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"


def strip_comments(text: str, file: str, strings: bool = True) -> str:
    """The text without comments and, with `strings=False`, with empty string literals. `file` gives the language."""

    def shorten(found: re.Match[str]) -> str:
        if found.lastgroup == "comment":
            return " "
        return '""' if found["string"] and not strings else found[0]

    return (PYTHON if file.endswith(".py") else CPP).sub(shorten, text)


def find_host_calls(code: str, *names: str) -> list[str]:
    """Which functions, such as "exp" (and its float version "expf"), the host code of a CUDA source calls.

    `code` has no comments.
    """
    calls = re.findall(rf"\b(?:{'|'.join(names)})f?\b", re.sub(ON_THE_GPU, "", code))
    return list(dict.fromkeys(calls))


def find_narrow_products(code: str, *factors: str) -> list[str]:
    """The 32-bit variables, such as "at", that are set to a product with one of these factors, such as "row".

    `code` has no comments. Sizes at which such a product overflows do not fit into the memory of a test.
    """
    either = "|".join(factors)
    value = rf"[^;]*?(?:\b(?:{either})\b[^;,]*\*|\*[^;,]*\b(?:{either})\b)"
    return re.findall(rf"\b(?:int|unsigned|u?int32_t)\s+(\w+)\s*=\s*{value}", code)
