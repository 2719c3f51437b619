"""Whoever does all exercises has written every line of the C++ stages once: their lltm.py, csrc/ and setup.py."""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Iterator

import pytest

from common import stages
from common.exercises import every, variants

COVERED = (2, 3, 4)
# Namespaces and headers, not code of one's own; and signs that stand alone.
ASIDE = re.compile(r"#\s*(include|pragma)\b.*|using [\w:]+;|(from \S+ )?import .*|[\s{}()\[\];,]*")


def statements(file: str, text: str) -> Iterator[str]:
    """The lines of code of a file, or of a part of one, without comments, docstrings and spacing."""
    if file.endswith(".py"):
        text = without_docstrings(text)
    text = re.sub(r"#(?! *(?:include|pragma)\b).*" if file.endswith(".py") else r"//.*", "", text)
    for line in text.splitlines():
        statement = re.sub(r"lltm_stage\d", "lltm_stageN", " ".join(line.split()))  # stages differ in it, always
        if not ASIDE.fullmatch(statement):
            yield statement


def without_docstrings(text: str) -> str:
    """Python without its docstrings; a part of a file that is no program of its own has none."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    lines = text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [""] * (first.end_lineno - first.lineno + 1)
    return "\n".join(lines)


def written() -> set[str]:
    """Every line of code of an answer: where the learner writes, or where a whole file had another line."""
    found = set()
    for exercise in every():
        if exercise.kind == "predict":
            continue
        solution, both = variants.solution(exercise), (variants.without_answers(exercise), variants.starter(exercise))
        for file, text in solution.items():
            for other in both:
                there = collections.Counter(statements(file, other.get(file, "")))
                found |= (collections.Counter(statements(file, text)) - there).keys()
    return found


@pytest.mark.parametrize("number", COVERED)
def test_the_answers_are_the_stage(number):
    folder, answers = stages.get_stage(number).folder, written()
    sources = [folder / "lltm.py", folder / "setup.py", *sorted((folder / "csrc").rglob("*"))]
    missing = [
        f"{path.relative_to(folder)}: {statement}"
        for path in sources
        for statement in statements(path.name, path.read_text(encoding="utf-8"))
        if statement not in answers
    ]
    assert not missing, "no exercise asks for\n" + "\n".join(missing)


def test_a_line_that_no_exercise_asks_for_is_found():
    line = "const int64_t nobody = batch_size;"
    assert list(statements("a.cu", f"#include <cmath>\n{{\n  {line}  // why\n}}\n")) == [line]
    assert line not in written()
    assert list(statements("a.py", '"""What it is."""\n\nimport torch\n\nNAME = "x"  # why\n')) == ['NAME = "x"']
