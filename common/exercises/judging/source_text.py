"""Removes comments from a learner's source, so that a search for code does not find text in a comment."""

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


def strip_comments(text: str, file: str, strings: bool = True) -> str:
    """The text without comments and, with `strings=False`, with empty string literals. `file` gives the language."""

    def shorten(found: re.Match[str]) -> str:
        if found.lastgroup == "comment":
            return " "
        return '""' if found["string"] and not strings else found[0]

    return (PYTHON if file.endswith(".py") else CPP).sub(shorten, text)
