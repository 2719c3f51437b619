"""known_answers.txt: what it says, what is refused, and that the folders it replaces are converted."""

from __future__ import annotations

import pytest

from common.errors import UserError
from common.exercises import every, exercise, variants, workspace
from common.exercises.exercise import Exercise
from common.exercises.variants.convert import convert
from common.exercises.variants.known import FILE, Known, format_known, read_known
from support.exercises import learner

TWO = {
    "wrong/one_less": Known({"SOLUTION.py": "return 41\n", "csrc/a.cu.diff": "-a\n+\n\n"}, ["the number", "is 42"]),
    "right/a_sum": Known({"empty.h": "", "SOLUTION.py": "\nreturn 21 + 21\n\n"}, []),
}
TEXT = """=== wrong one_less
says: the number
says: is 42
== SOLUTION.py
return 41
== csrc/a.cu.diff
-a
+


=== right a_sum
== empty.h
== SOLUTION.py

return 21 + 21

"""


def with_answers(folder, text: str) -> Exercise:
    """The small exercise with these answers."""
    one = learner.read(folder)
    (one.folder / FILE).write_text(text)
    return one


def test_it_is_read_as_it_was_written():
    assert format_known(TWO) == TEXT
    assert read_known(TEXT) == TWO


def test_an_answer_may_stand_directly_below_another():
    read = read_known("=== right a\n== b\none\n=== right c\n== d\ntwo")
    assert read == {"right/a": Known({"b": "one\n"}, []), "right/c": Known({"d": "two\n"}, [])}


@pytest.mark.parametrize("one", every(), ids=lambda one: one.id)
def test_the_exercises_are_written_in_its_form(one):
    assert format_known(variants.known_answers(one)) == (one.folder / FILE).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("says: 42\n", "'says: 42' is above the first heading"),
        ("=== wrong\n== a\n", "'=== wrong' is none of === wrong NAME, === right NAME and === starter"),
        ("=== wrong a b\n== a\n", "'=== wrong a b' is none of"),
        ("=== wrong a\nsays: 42\n", "wrong/a replaces nothing"),
        ("=== wrong a\n== SOLUTION.py\nreturn 41\n", r"wrong/a does not say what the learner must see"),
        ("=== right a\nsays: 42\n== SOLUTION.py\n", "right/a: 'says: 42' belongs to no file"),
        ("=== wrong a\nsay: 42\n== SOLUTION.py\n", "wrong/a: 'say: 42' belongs to no file"),
        ("=== right a\n== b\n== b\n", "right/a: b is there twice"),
        ("=== right a\n== b\n\n=== right a\n== b\n", "right/a is there twice"),
    ],
)
def test_what_is_malformed_is_refused_with_the_exercise(tmp_path, text, says):
    with pytest.raises(UserError, match=rf"exercise 1/number: {FILE}: {says}"):
        variants.wrong(with_answers(tmp_path, text))


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("answer.py.diff", "-    return 43\n+    return 41\n", "does not fit answer.py: not found"),
        ("other.py.diff", "-a\n+b\n", "replaces nothing"),
    ],
)
def test_an_answer_that_no_longer_fits_names_the_exercise(tmp_path, file, change, says):
    one = with_answers(tmp_path, f"=== wrong one_less\nsays: 42\n== {file}\n{change}")
    with pytest.raises(UserError, match=rf"exercise 1/number: wrong/one_less/{file} {says}"):
        variants.wrong(one)


def test_an_answer_is_the_solution_with_its_changes(tmp_path):
    one = with_answers(tmp_path, "=== wrong one_less\nsays: 42\n== answer.py.diff\n-    return 42\n+    return 41\n")
    assert "return 41" in variants.wrong(one)["one_less"]["answer.py"]


OLD_FORM = {
    "starter/answer.py.diff": "-    return 0\n+    return 1\n",
    "wrong/one_less/SOLUTION.py": "return 41",
    "wrong/one_less/says.txt": "the number is 42\n\n  42\n",
    "right/a_sum/csrc/b.cpp": "int b;\n",
}


def test_the_old_form_is_named_and_converted(tmp_path):
    folder = learner.write(tmp_path)
    (folder / FILE).unlink()
    workspace.write_files(OLD_FORM, folder)
    with pytest.raises(UserError, match=rf"{FILE} takes the place of .*variants.convert {folder}"):
        variants.wrong(exercise.read_exercise(folder, 1))
    convert(folder)
    assert read_known((folder / FILE).read_text()) == {
        "starter": Known({"answer.py.diff": "-    return 0\n+    return 1\n"}, []),
        "wrong/one_less": Known({"SOLUTION.py": "return 41\n"}, ["the number is 42", "42"]),
        "right/a_sum": Known({"csrc/b.cpp": "int b;\n"}, []),
    }
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["check.py", "exercise.ini", "files", "hints.md", FILE, "README.md"]
    )


def test_what_one_file_cannot_hold_is_left_as_it_is(tmp_path):
    folder = learner.write(tmp_path)
    workspace.write_files(OLD_FORM | {"right/a_sum/csrc/b.cpp": "== c\n"}, folder)
    with pytest.raises(ValueError, match="a line that begins with =="):
        convert(folder)
    assert (folder / "wrong" / "one_less" / "says.txt").exists()
