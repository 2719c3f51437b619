"""The proof of every exercise: its starter fails helpfully, its solution passes, wrong answers are told why."""

from __future__ import annotations

import configparser

import pytest

from common.exercises import Exercise, every, place, variants
from common.exercises.checking import Verdict, check
from common.exercises.exercise import MANIFEST
from common.stages import ROOT

EXERCISES = every()
WRONG = [(exercise, name) for exercise in EXERCISES for name in variants.wrong(exercise)]
each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
pytestmark = pytest.mark.needs("g++")


def checked(exercise: Exercise, files: variants.Files, folder) -> Verdict:
    place.write(files, folder / "work")
    return check(exercise, folder / "work")


@each
def test_the_starter_fails_helpfully(exercise, tmp_path):
    verdict = checked(exercise, variants.starter(exercise), tmp_path)
    assert not verdict.passed
    assert verdict.kind != "checker", verdict.message
    assert "This is still the starter" in verdict.message
    assert verdict.kind != "build" or not exercise.builds, verdict.message
    for _, line, todo in variants.todos(variants.starter(exercise)):
        assert f":{line}: {todo}" in verdict.message


@each
def test_the_solution_passes(exercise, tmp_path):
    verdict = checked(exercise, variants.solution(exercise), tmp_path)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize(("exercise", "name"), WRONG, ids=[f"{exercise.id}-{name}" for exercise, name in WRONG])
def test_a_wrong_answer_is_told_so(exercise, name, tmp_path):
    verdict = checked(exercise, variants.wrong(exercise)[name], tmp_path)
    assert not verdict.passed
    assert verdict.kind != "checker", verdict.message
    assert "This is still the starter" not in verdict.message
    for expected in variants.says(exercise, name):
        assert expected in verdict.message


@each
def test_it_is_complete(exercise):
    assert exercise.task.startswith("# ")
    assert exercise.task.splitlines()[0] == f"# {exercise.title}"
    assert len(exercise.hints) >= 2
    assert all(exercise.hints)
    assert exercise.syllabus
    wrong = variants.wrong(exercise)
    assert len(wrong) >= 2
    assert all(variants.says(exercise, name) for name in wrong)
    answers = [variants.starter(exercise), variants.solution(exercise), *wrong.values()]
    assert all(a != b for k, a in enumerate(answers) for b in answers[:k]), "two variants are the same"


@each
def test_starters_are_generated_the_same_again(exercise, tmp_path, monkeypatch):
    monkeypatch.setenv("WORK", str(tmp_path))
    folder = place.begin(exercise)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {str(path.relative_to(folder)) for path in before} == set(variants.starter(exercise))
    place.begin(exercise)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_none_is_left_out():
    folders = {path.parent for path in ROOT.glob("stages/*/exercises/*/*")} - {None}
    here = {exercise.folder for exercise in EXERCISES}
    assert {folder for folder in folders if folder.is_dir()} == here


def test_orders_differ_within_a_stage():
    orders = [(exercise.stage, exercise.order) for exercise in EXERCISES]
    assert len(set(orders)) == len(orders)


def test_manifests_have_no_unknown_settings():
    known = {"order", "kind", "title", "minutes", "size", "syllabus", "points", "needs", "seconds", "builds"}
    for exercise in EXERCISES:
        manifest = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=(";",))
        manifest.read(exercise.folder / MANIFEST)
        assert set(manifest["exercise"]) <= known, exercise.id
