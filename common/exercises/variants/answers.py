"""answers.ini, in which a learner answers the questions of an exercise."""

from __future__ import annotations

import configparser
from collections.abc import Sequence

from ..exercise import Question

ANSWERS = "answers.ini"


def format_answers(questions: Sequence[Question], answers: dict[str, str] | None = None) -> str:
    """The text of answers.ini."""
    parts = ["# Write your answers after the = signs, then: make check", "[answers]"]
    for question in questions:
        answer = (answers or {}).get(question.name, "")
        parts += ["", *(f"# {line}" for line in question.ask.splitlines()), f"{question.name} = {answer}".rstrip()]
    return "\n".join(parts) + "\n"


def read_answers(text: str) -> dict[str, str]:
    """The answers in an answers.ini. Raises configparser.Error for an invalid file."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=False)
    parser.read_string(text)
    return dict(parser["answers"]) if parser.has_section("answers") else {}
