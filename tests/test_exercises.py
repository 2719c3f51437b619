"""The proof of every exercise: its starter fails helpfully, its solution passes, wrong answers are told why.

PROVE=all, as `make prove` sets it, proves all and writes that down; else what was proven before and has not changed
waits for its day (common/exercises/proof.py).
"""

from __future__ import annotations

import configparser
import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.exercises import every, place, proof, variants
from common.exercises.exercise import MANIFEST
from common.stages import ROOT

EXERCISES = every()
ALL = os.environ.get("PROVE") == "all"
DUE = EXERCISES if ALL else proof.due(EXERCISES)
VARIANTS = [variant for exercise in DUE for variant in proof.of(exercise)]
AT_ONCE = 2  # variants: a compiler and an import of torch keep two cores busy
each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
pytestmark = pytest.mark.needs("g++")


def each_variant(start: str):
    found = [variant for variant in VARIANTS if variant.name.startswith(start)]
    return pytest.mark.parametrize("variant", found, ids=str)


@pytest.fixture(scope="module")
def proven(request):
    """`with proven(variant) as verdict:` notes that it is, unless something in there fails.

    All that this run asks for are judged in the background, two at a time.
    """
    chosen = [item.callspec.params.get("variant") for item in request.session.items if hasattr(item, "callspec")]
    chosen = [variant for variant in chosen if isinstance(variant, proof.Variant)]
    seconds: dict[proof.Variant, float] = {}
    pool = ThreadPoolExecutor(AT_ONCE)
    judged = {variant: pool.submit(variant.judged) for variant in chosen}

    @contextlib.contextmanager
    def verdict_on(variant: proof.Variant):
        verdict = judged[variant].result()
        assert verdict.kind != "checker", verdict.message
        yield verdict
        seconds[variant] = verdict.seconds

    try:
        yield verdict_on
    finally:
        pool.shutdown(cancel_futures=True)
    if ALL:
        proof.record(seconds, EXERCISES)


@each_variant("starter")
def test_the_starter_fails_helpfully(variant, proven):
    with proven(variant) as verdict:
        assert not verdict.passed
        assert "This is still the starter" in verdict.message
        assert verdict.kind != "build" or not variant.exercise.builds, verdict.message
        for _, line, todo in variants.todos(variant.files):
            assert f":{line}: {todo}" in verdict.message


@each_variant("solution")
def test_the_solution_passes(variant, proven):
    with proven(variant) as verdict:
        assert verdict.passed, verdict.message


@each_variant("wrong/")
def test_a_wrong_answer_is_told_so(variant, proven):
    with proven(variant) as verdict:
        assert not verdict.passed
        assert "This is still the starter" not in verdict.message
        for expected in variants.says(variant.exercise, variant.name.removeprefix("wrong/")):
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
