"""known_answers.txt: the wrong and right answers to an exercise, and what its starter changes.

    === wrong one_too_many
    says: thread 32 writes outside of `out`
    == lltm.cu.diff
    -  if (unit >= state_size) return;
    +  if (unit > state_size) return;

    === right another_order
    == SOLUTION.cu
    ...

A heading begins each answer, `starter` among them. Each of its files begins with a line `== PATH` and ends before the
next such line, or before the empty line above the next heading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

FILE = "known_answers.txt"
HEADING = re.compile(r"=== (?:(?P<starter>starter)|(?P<kind>wrong|right) (?P<name>\w+))")
SAYS = "says: "


class Known(NamedTuple):
    """An answer: its files by path, and for a wrong one what its message must contain."""

    files: dict[str, str]
    says: list[str]


def read_known(text: str) -> dict[str, Known]:
    """The answers by name: "starter", "wrong/NAME" or "right/NAME". Raises `ValueError` if the text is malformed."""
    found: dict[str, Known] = {}
    above, *answers = re.split(r"(?:\A|\n)(?=={3} )", text)
    if above.strip():
        raise ValueError(f"{above.strip().splitlines()[0]!r} is above the first heading")
    for answer in answers:
        heading, _, body = answer.partition("\n")
        if not (what := HEADING.fullmatch(heading)):
            raise ValueError(f"{heading!r} is none of === wrong NAME, === right NAME and === starter")
        name = what["starter"] or f"{what['kind']}/{what['name']}"
        if name in found:
            raise ValueError(f"{name} is there twice")
        found[name] = read_answer(name, body)
    return found


def read_answer(name: str, body: str) -> Known:
    """One answer, from the lines below its heading."""
    above, *files = re.split(r"^== ", body, flags=re.MULTILINE)
    given, says = {}, []
    for line in filter(str.strip, above.splitlines()):
        if not (name.startswith("wrong/") and line.startswith(SAYS)):
            raise ValueError(f"{name}: {line!r} belongs to no file")
        says.append(line.removeprefix(SAYS).strip())
    for file in files:
        path, _, content = file.partition("\n")
        if path in given:
            raise ValueError(f"{name}: {path} is there twice")
        given[path] = content + "\n" * (content != "" and not content.endswith("\n"))
    if not given:
        raise ValueError(f"{name} replaces nothing")
    if name.startswith("wrong/") and not says:
        raise ValueError(f"{name} does not say what the learner must see (says: ...)")
    return Known(given, says)


def format_known(answers: Mapping[str, Known]) -> str:
    """The text of known_answers.txt."""
    return "\n".join(format_answer(name, known) for name, known in answers.items())


def format_answer(name: str, known: Known) -> str:
    """The lines of one answer. Its files end with a line break."""
    lines = [f"=== {name.replace('/', ' ')}\n", *(f"{SAYS}{text}\n" for text in known.says)]
    for path, text in known.files.items():
        lines += [f"== {path}\n", text]
    return "".join(lines)
