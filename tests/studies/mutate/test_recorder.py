"""`make mutate`, on an exercise of the tests' own: what it shows, counts and records."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from common import study
from common.errors import UserError
from common.exercises import find
from common.exercises.checking import Verdict
from common.studies.mutate import STUDY
from common.studies.mutate import recorder as run
from common.studies.mutate.equivalents import read_equivalents
from common.studies.mutate.mutants import Mutant
from support.exercises import learner

CHECK = """from common.exercises.judge import require


def check(work):
    number = work.load("answer").number
    require(number() == 42, "the number is 42")
"""
ANSWER = """def number(low=0):
    # BEGIN SOLUTION: return the number.
    if low > 0:
        return low
    return 42
    # END SOLUTION
"""
EQUIVALENT = """# answer.py: nobody calls it
# with a number
-    if low > 0:
+    if low >= 1:
---
-    if low > 0:
+    if low > 1:
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An exercise whose check never gives `low`, and a record of its own."""
    folder = learner.write(tmp_path / "exercises", rule=CHECK, answer=ANSWER)
    monkeypatch.setenv("EXERCISES", str(tmp_path / "exercises"))
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    return folder


def judge_by(monkeypatch, rule) -> None:
    """Replaces the judge by a function of the answer's text, for all but the test that runs it."""

    def check(exercise, files, seconds=None):
        kind = rule(files["answer.py"])
        return Verdict(exercise.id, kind == "passed", kind, "said", 0.1, "host")

    monkeypatch.setattr(run, "check_files", check)


def test_survivors_are_shown_and_counted(here, capsys, tmp_path):
    folder = learner.write(tmp_path / "exercises", "least", rule=learner.CHECK.replace("== 42", "in (42, 43)"))
    manifest = folder / "exercise.ini"
    manifest.write_text(manifest.read_text().replace("seconds = 3", "seconds = 120"))
    assert run.mutate(["1/least"], jobs=2) == 1
    said = capsys.readouterr().out
    assert said.startswith(
        "exercise 1/least: 2 mutants, 2 at a time\nsurvived, answer.py:2\n-    return 42\n+    return 43\n"
    )
    assert "\nexercise 1/least: 1 killed, 1 survived, 0 equivalent, 0 not viable (" in said
    record = STUDY.read_record()
    counts = {"killed": 1, "survived": 1, "equivalent": 0, "not_viable": 0}
    (row,) = record["rows"]
    assert row | counts | {"exercise": "1/least", "torch": version("torch")} == row
    assert row["date"].endswith("Z")
    assert record["sources"] == {"1/least": run.hash_exercise(find("1/least"))}


def test_each_outcome(here, capsys, monkeypatch, tmp_path):
    verdicts = {"low >= 0": "wrong", "return 43": "checker", "return None": "crash"}
    judge_by(monkeypatch, lambda text: next((kind for part, kind in verdicts.items() if part in text), "passed"))
    (here / "equivalent.txt").write_text(EQUIVALENT)
    assert run.mutate(["1/number"]) == 1
    said = capsys.readouterr().out
    assert "survived, answer.py:4: the check itself failed\n-    return 42\n+    return 43\n" in said
    assert (
        "equivalent.txt has a diff of answer.py that matches no mutant:\n-    if low > 0:\n+    if low >= 1:\n"
        in said
    )
    assert "1 equivalent, 0 not viable" in said
    assert "+    if low > 1:" not in said


@pytest.mark.parametrize(("file", "outcome"), [("csrc/lltm.cpp", "not viable"), ("setup.py", "killed")])
def test_a_build_that_fails(here, capsys, file, outcome):
    mutant = Mutant(file, 7, "the text", "-the\n+diff\n")
    verdict = Verdict("1/number", False, "build", "does not compile", 0.1, "host")
    assert run.find_outcome(mutant, verdict, is_equivalent=False) == outcome
    run.show_mutant(find("1/number"), mutant, outcome, verdict, is_equivalent=False)
    assert capsys.readouterr().out == (
        "not viable, csrc/lltm.cpp:7\n-the\n+diff\n\n" if file.endswith(".cpp") else ""
    )


def test_a_mutant_that_takes_too_long_is_shown(here, capsys, monkeypatch):
    judge_by(monkeypatch, lambda text: "time" if "43" in text else "passed" if "None" not in text else "wrong")
    run.mutate(["1/number"])
    said = capsys.readouterr().out
    assert "killed because it ran out of time, answer.py:4\n-    return 42\n+    return 43\n" in said
    assert "exercise 1/number: 3 killed, " in said


def test_what_the_check_refuses_is_no_equivalent(here, capsys, monkeypatch):
    judge_by(
        monkeypatch, lambda text: "passed" if "low > 0" in text and "42" in text and "None" not in text else "wrong"
    )
    (here / "equivalent.txt").write_text(EQUIVALENT)
    assert run.mutate(["1/number"]) == 0
    said = capsys.readouterr().out
    assert "killed, answer.py:2, although equivalent.txt lists it: said\n-    if low > 0:\n" in said


def test_the_record_keeps_other_exercises(here, monkeypatch, tmp_path):
    judge_by(monkeypatch, lambda text: "passed" if text.count("low > 0") else "wrong")
    learner.write(tmp_path / "exercises", "again", rule=CHECK, answer=ANSWER)
    run.mutate(["1/number"])
    run.mutate(["1/again", "1/number"])
    record = STUDY.read_record()
    assert [row["exercise"] for row in record["rows"]] == ["1/again", "1/number"]
    assert record["sources"].keys() == {"1/again", "1/number"}


def test_a_solution_that_does_not_pass_is_named(here, monkeypatch):
    judge_by(monkeypatch, lambda text: "wrong")
    with pytest.raises(UserError, match="1/number: our own solution does not pass on this machine"):
        run.mutate(["1/number"])


def test_equivalents_have_reasons(here):
    (here / "equivalent.txt").write_text(EQUIVALENT)
    assert read_equivalents(find("1/number")) == {
        ("answer.py", "-    if low > 0:\n+    if low >= 1:\n"): "nobody calls it with a number",
        ("answer.py", "-    if low > 0:\n+    if low > 1:\n"): "nobody calls it with a number",
    }
    for text in ("-a\n+b\n", "# no reason\n-a\n+b\n"):
        (here / "equivalent.txt").write_text(text)
        with pytest.raises(UserError, match="FILE: REASON"):
            read_equivalents(find("1/number"))
