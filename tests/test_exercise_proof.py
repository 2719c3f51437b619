"""What is proven again, and when: whatever differs from the record, and each day another seventh of the rest."""

from __future__ import annotations

import datetime
import subprocess
import sys
from fnmatch import fnmatch

import learner
import pytest

from common.exercises import exercise, proof
from common.stages import ROOT

DAY = datetime.date(2026, 1, 5)
WEEK = [DAY + datetime.timedelta(days=k) for k in range(proof.DAYS)]


@pytest.fixture
def exercises(tmp_path, monkeypatch):
    """Ten exercises, of which nothing is recorded."""
    monkeypatch.setattr(proof, "RECORD", tmp_path / "proof.json")
    return [learner.read(tmp_path / "exercises", name=f"number{k}", order=k) for k in range(10)]


def prove(exercises, all_of_them=None) -> None:
    proof.record({variant: 1.0 for one in exercises for variant in proof.of(one)}, all_of_them or exercises)


def test_what_was_never_proven_is_due(exercises):
    assert proof.due(exercises, DAY) == exercises


def test_each_is_due_once_a_week(exercises):
    prove(exercises)
    due = [one.id for day in WEEK for one in proof.due(exercises, day)]
    assert sorted(due) == sorted(one.id for one in exercises)
    assert all(len(proof.due(exercises, day)) <= 2 for day in WEEK)


@pytest.mark.parametrize(
    ("file", "is_due"),
    [
        ("check.py", True),
        ("files/answer.py", True),
        ("wrong/one_less/SOLUTION.py", True),
        ("wrong/one_less/says.txt", True),
        ("exercise.ini", True),
        ("hints.md", False),
        ("README.md", False),
    ],
)
def test_what_changed_is_due(exercises, file, is_due):
    prove(exercises)
    changed = exercises[4]
    path = changed.folder / file
    path.write_text(path.read_text() + "\n")
    again = [exercise.read(one.folder, 1) for one in exercises]
    for day in WEEK:
        its_turn = day.toordinal() % proof.DAYS == 4
        assert (changed.id in [one.id for one in proof.due(again, day)]) == (is_due or its_turn)


def test_all_are_due_when_the_harness_changed(exercises, monkeypatch):
    prove(exercises)
    monkeypatch.setattr(proof, "harness", lambda: "another")
    assert proof.due(exercises, DAY) == exercises


def test_an_exercise_is_recorded_only_when_all_its_variants_are_proven(exercises):
    first, *others = exercises
    seconds = {variant: 1.0 for one in others for variant in proof.of(one)}
    seconds |= dict.fromkeys(proof.of(first)[:-1], 1.0)
    proof.record(seconds, exercises)
    assert set(proof.recorded()) == {one.id for one in others}
    assert proof.recorded()[others[0].id]["seconds"] == {"starter": 1.0, "solution": 1.0, "wrong/one_less": 1.0}


def test_what_there_is_no_more_is_dropped_and_the_rest_kept(exercises):
    prove(exercises)
    prove(exercises[:1], exercises[:5])
    assert set(proof.recorded()) == {one.id for one in exercises[:5]}


def test_the_harness_is_all_that_a_check_imports():
    code = "import runpy, sys; import common.exercises.checking; "
    code += "[runpy.run_path(path) for path in sys.argv[1:]]; print(*sys.modules)"
    checks = [str(one.rule) for one in exercise.every()]
    done = subprocess.run([sys.executable, "-c", code, *checks], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {name.removeprefix("common.").replace(".", "/") for name in done.stdout.split()}
    assert {"exercises/judge", "exercises/programs"} <= imported
    assert not [name for name in imported if any(fnmatch(name, other) for other in proof.OTHERS)]
    assert all(list((ROOT / "common").glob(f"{name}.py")) for name in proof.OTHERS)


def test_a_variant_is_judged_and_its_build_is_not_kept(exercises):
    solution = proof.of(exercises[0])[1]
    assert str(solution) == "1/number0-solution"
    assert solution.judged().passed


def test_the_real_ones_have_a_hash_each():
    every = exercise.every()
    assert len({proof.fingerprint(one) for one in every}) == len(every)
