"""A learner's source without what does not run, so that no comment passes for code or makes right code wrong."""

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
    """The text without comments; without `strings`, literals are empty, too. `file` tells Python from C++."""

    def shorten(found: re.Match[str]) -> str:
        if found.lastgroup == "comment":
            return " "
        return '""' if found["string"] and not strings else found[0]

    return (PYTHON if file.endswith(".py") else CPP).sub(shorten, text)
