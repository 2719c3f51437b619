"""The changes that mutants are made of: each rule in Python and in C++, and only in the learner's part."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from common.exercises import every, find, variants
from common.exercises.variants.diffs import apply_diff
from common.studies.mutate.cpp_edits import cpp_edits
from common.studies.mutate.edits import other_number
from common.studies.mutate.equivalents import read_equivalents
from common.studies.mutate.mutants import find_mutants
from common.studies.mutate.python_edits import python_edits


def changed(edits, text: str) -> set[str]:
    return {edit.apply(text) for edit in edits(text)}


@pytest.mark.parametrize(
    ("text", "mutants"),
    [
        ("a + b * 3", {"a - b * 3", "a", "(b * 3)", "a + b / 3", "a + b", "a + 3", "a + b * 4"}),
        ("-x", {"x"}),
        ("a < b <= c", {"a <= b <= c", "a < b < c"}),
        ("a and b", {"a or b", "a", "b"}),
        ("f(a, b, dim=1)", {"f(b, a, dim=1)", "f(a, b)", "f(a, b, dim=0)", "pass"}),
        ("f(dim=2)", {"f()", "f(dim=3)", "pass"}),
        ("ä = x.contiguous()", {"ä = x"}),
        ("x[0] = min(a)", {"x[1] = min(a)", "x[0] = max(a)", "pass"}),
        ("a if b else c", {"a", "c"}),
        ("[a, b]", {"[b, a]", "[b]", "[a]"}),
        ("x += y", {"x -= y", "pass"}),
        ("[x for x in y if x is True]", {"[x for x in y if True]", "[x for x in y if x is not True]",
                                         "[x for x in y if x is False]"}),
        ("if a:\n    raise b", {"if True:\n    raise b", "if False:\n    raise b", "if a:\n    pass"}),
        ("def f():\n    return a, b", {"def f():\n    return None, b", "def f():\n    return a, None",
                                       "def f():\n    return b, a", "def f():\n    return b",
                                       "def f():\n    return a"}),
        ("@once\ndef f():\n    g()", {"\ndef f():\n    g()", "@once\ndef f():\n    pass"}),
    ],
)  # fmt: skip
def test_python(text, mutants):
    found = changed(python_edits, text)
    expression = {mutant for mutant in mutants if mutant != "pass"}
    assert found - {"pass"} == expression
    assert ("pass" in found) == ("pass" in mutants or isinstance(ast.parse(text).body[0], ast.Expr))


@pytest.mark.parametrize(
    ("text", "mutants"),
    [
        ("y = a + b * c;", {"y = a - b * c;", "y = a;", "y = b * c;", "y = a + b / c;", "y = a + b;", "y = a + c;",
                            ";"}),
        ("return a - b;", {"return a + b;", "return a;"}),
        ("if (unit >= S) return;", {"if (true) return;", "if (false) return;", "if (unit > S) return;",
                                    "if (unit >= S) ;"}),
        ("y = -x;", {"y = x;", ";"}),
        ("y = c ? a : b;", {"y = c ? b : a;", ";"}),
        ("__syncthreads();", {";"}),
        ("const int64_t n = 2; f(n);", {"const int n = 2; f(n);", "const int64_t n = 3; f(n);",
                                        "const int64_t n = 2; ;"}),
        ("const Guard guard(x.device());", {";"}),
        ("std::vector<float*> x(p);", {";"}),
        ("y = static_cast<float>(x);", {"y = (x);", ";"}),
        ("y = int64_t(x) << 2;", {"y = (x) << 2;", "y = int64_t(x) << 3;", ";"}),
        ("y = (float)x;", {"y = x;", ";"}),
        ("y = blockIdx.x;", {"y = threadIdx.x;", "y = blockIdx.y;", ";"}),
        ("f(x.contiguous(), 1.5f);", {"f(x, 1.5f);", "f(1.5f, x.contiguous());", "f(x.contiguous(), 2.5f);", ";"}),
        ("k<T><<<n, m, 0, s>>>(x);", {"k<T><<<m, n, 0, s>>>(x);", "k<T><<<n, m, 0>>>(x);", "k<T><<<n, m, 1, s>>>(x);",
                                      "k<T><<<1, m, 0, s>>>(x);", "k<T><<<n, 1, 0, s>>>(x);", ";"}),
        ("a += !b;", {"a -= !b;", "a = !b;", "a += b;", ";"}),
        ("#define N 3\n", set()),
        ('f("1 + 2");  // a + b', {";  // a + b"}),
    ],
)  # fmt: skip
def test_cpp(text, mutants):
    found = {mutant.removeprefix("{\n") for mutant in changed(cpp_edits, "{\n" + text)}
    assert found - {text} == mutants


@pytest.mark.parametrize(
    ("literal", "other"),
    [
        ("0", "1"),
        ("1", "0"),
        ("7", "8"),
        ("0u", "1u"),
        ("1.0f", "2.0f"),
        ("1e-3", "1.001"),
        ("0x1f", None),
        ("two", None),
    ],
)
def test_numbers(literal, other):
    assert other_number(literal) == other


def test_only_what_the_learner_writes_is_changed():
    guard = find("3/guard")  # a planted mistake: the line that the solution fixes
    assert {mutant.line for mutant in find_mutants(guard)} == {
        number + 1 for number in variants.learner_lines(guard)["scale_rows.cu"]
    }
    solution = variants.solution(find("1/cell"))["lltm.py"].splitlines()
    changed_lines = {solution[mutant.line - 1] for mutant in find_mutants(find("1/cell"))}
    assert "    return new_h, new_cell" in changed_lines
    assert not [line for line in changed_lines if line.startswith(("import", "from", "class"))]


@pytest.mark.parametrize("exercise", every(), ids=lambda exercise: exercise.id)
def test_every_exercise(exercise):
    """Each diff makes its mutant of the solution, and each recorded equivalent is a mutant."""
    mutants, solution = find_mutants(exercise), variants.solution(exercise)
    languages = {Path(name).suffix for name in variants.learner_lines(exercise)}
    assert bool(mutants) == (languages != {".txt"})  # nothing changes a CMakeLists.txt
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        assert apply_diff(solution[mutant.file], mutant.diff) == mutant.text
        if mutant.file.endswith(".py"):
            compile(mutant.text, mutant.file, "exec")
    assert read_equivalents(exercise).keys() <= {mutant.key for mutant in mutants}
