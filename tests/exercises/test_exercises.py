"""The proof of every exercise: its starter fails helpfully, its solution passes, wrong answers are told why."""

from __future__ import annotations

import configparser
from collections import Counter

import pytest

from common.exercises import every, variants, workspace
from common.exercises.exercise import MANIFEST
from common.exercises.judging.source_text import strip_comments
from common.paths import ROOT
from support.exercises import learner
from support.exercises.variants import Variant, variants_of

EXERCISES = every()
VARIANTS = [variant for one in EXERCISES for variant in variants_of(one)]
each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
pytestmark = pytest.mark.needs("g++")


def each_variant(start: str):
    """A proof for each of some variants."""
    found = [variant for variant in VARIANTS if variant.name.startswith(start)]
    params = [pytest.param(variant, id=str(variant), marks=proof_of(variant)) for variant in found]
    return pytest.mark.parametrize("variant", params)


def proof_of(variant: Variant) -> pytest.MarkDecorator:
    # The learner's process runs a script of runner/, which nothing imports.
    uses, part = ["common.exercises.runner"], variant.exercise.id
    return pytest.mark.proof("exercises", part=part, files=variant.sources, uses=uses, text=variant.text)


@each_variant("starter")
def test_the_starter_fails_helpfully(variant):
    verdict = variant.judged()
    assert verdict.kind != "checker", verdict.message
    assert not verdict.passed
    assert "This is still the starter" in verdict.message
    assert verdict.kind != "build" or not variant.exercise.builds, verdict.message
    for _, line, todo in variants.find_todos(variant.files):
        assert f":{line}: {todo}" in verdict.message


@each_variant("solution")
def test_the_solution_passes(variant):
    verdict = variant.judged()
    assert verdict.kind != "checker", verdict.message
    assert verdict.passed, verdict.message


@each_variant("wrong/")
def test_a_wrong_answer_is_told_so(variant):
    verdict = variant.judged()
    assert verdict.kind != "checker", verdict.message
    assert not verdict.passed
    assert "This is still the starter" not in verdict.message
    for expected in variants.expected_messages(variant.exercise, variant.name.removeprefix("wrong/")):
        assert expected in verdict.message


@each_variant("right/")
def test_another_right_answer_passes(variant):
    verdict = variant.judged()
    assert verdict.passed, verdict.message


@each
def test_it_is_complete(exercise):
    assert exercise.task.startswith("# ")
    assert exercise.task.splitlines()[0] == f"# {exercise.title}"
    assert f"\n    make check EX={exercise.id}" in exercise.task
    assert len(exercise.hints) >= 2
    assert all(exercise.hints)
    assert exercise.syllabus
    wrong = variants.wrong(exercise)
    assert len(wrong) >= 2
    assert all(variants.expected_messages(exercise, name) for name in wrong)
    right = variants.right(exercise).values()
    answers = [variants.starter(exercise), variants.solution(exercise), *wrong.values(), *right]
    assert all(a != b for k, a in enumerate(answers) for b in answers[:k]), "two variants are the same"


def lines_of_code(text: str, file: str) -> Counter[str]:
    """The lines that are long enough to be recognised, without comments."""
    lines = (line.strip() for line in strip_comments(text, file).splitlines())
    return Counter(line for line in lines if len(line) > 20)


@each
def test_no_file_that_is_handed_out_shows_the_answer(exercise):
    given = {name: lines_of_code(text, name) for name, text in variants.starter(exercise).items()}
    written = Counter()
    for name, text in variants.solution(exercise).items():
        written += lines_of_code(text, name) - given.get(name, Counter())
    shown = [line for line in written if any(line in lines for lines in given.values())]
    assert 2 * len(shown) <= len(written), f"make `without` name the file that has these lines: {shown}"


@each
def test_starters_are_generated_the_same_again(exercise, tmp_path, monkeypatch):
    monkeypatch.setenv("WORK", str(tmp_path))
    folder = workspace.begin(exercise)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {str(path.relative_to(folder)) for path in before} == set(variants.starter(exercise))
    workspace.begin(exercise)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_none_is_left_out():
    folders = {path.parent for path in ROOT.glob("stages/*/exercises/*/*")} - {None}
    here = {one.folder for one in EXERCISES}
    assert {folder for folder in folders if folder.is_dir()} == here


def test_orders_differ_within_a_stage():
    orders = [(one.stage, one.order) for one in EXERCISES]
    assert len(set(orders)) == len(orders)


def test_manifests_have_no_unknown_settings():
    known = {"order", "kind", "title", "minutes", "size", "syllabus", "points", "needs", "seconds", "builds",
             "without"}  # fmt: skip
    for one in EXERCISES:
        manifest = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=(";",))
        manifest.read(one.folder / MANIFEST)
        assert set(manifest["exercise"]) <= known, one.id


# The proofs themselves ----------------------------------------------------------------------------------------------

EVERY_VARIANT = {"starter", "solution", "wrong/one_less", "wrong/two_less", "right/a_sum"}
WITH_MORE_ANSWERS = {
    "known_answers.txt": """=== starter
== answer.py.diff
-    return 0
+    return 1

=== wrong one_less
says: the number is 42
== SOLUTION.py
return 41

=== wrong two_less
says: 42
== SOLUTION.py
return 40

=== right a_sum
== SOLUTION.py
return 21 + 21
"""
}


@pytest.mark.parametrize(
    ("file", "is_due"),
    [
        ("check.py", EVERY_VARIANT),
        ("files/answer.py", EVERY_VARIANT),
        ("exercise.ini", EVERY_VARIANT),
        ("hints.md", set()),
        ("equivalent.txt", set()),
        ("known_answers.txt", set()),
        ("README.md", set()),
    ],
)
def test_what_changed_is_due(tmp_path, file, is_due):
    number = learner.read(tmp_path)
    workspace.write_files({**WITH_MORE_ANSWERS, "equivalent.txt": ""}, number.folder)
    proofs = {variant.name for variant in variants_of(number) if str(number.folder / file) in variant.sources}
    assert proofs == is_due


@pytest.mark.parametrize(
    ("old", "new", "is_due"),
    [
        ("return 40", "return 39", {"wrong/two_less"}),
        ("says: 42", "says: the number", {"wrong/two_less"}),
        ("21 + 21", "40 + 2", {"right/a_sum"}),
        ("return 1\n", "return 2\n", EVERY_VARIANT),
    ],
)
def test_of_the_answers_what_changed_is_due(tmp_path, old, new, is_due):
    number = learner.read(tmp_path)
    workspace.write_files(WITH_MORE_ANSWERS, number.folder)
    before = {variant.name: variant.text for variant in variants_of(number)}
    file, text = next(iter(WITH_MORE_ANSWERS.items()))
    workspace.write_files({file: text.replace(old, new)}, number.folder)
    assert {variant.name for variant in variants_of(number) if variant.text != before[variant.name]} == is_due


def test_a_stage_s_sources_count():
    first = next(variant for variant in VARIANTS if variant.exercise.stage == 3)
    assert {"stages/stage3_cuda_pointers/lltm.py", "stages/stage3_cuda_pointers/csrc/lltm.cpp"} <= set(first.sources)


def test_a_variant_is_judged_and_its_build_is_not_kept(tmp_path):
    solution = variants_of(learner.read(tmp_path))[1]
    assert str(solution) == "1/number-solution"
    assert solution.judged().passed


def test_the_real_ones_differ_in_what_they_depend_on():
    wrong = [(*variant.sources, variant.text) for variant in VARIANTS if variant.name.startswith("wrong/")]
    assert len(set(wrong)) == len(wrong)
    solutions = [tuple(variant.sources) for variant in VARIANTS if variant.name == "solution"]
    assert len(set(solutions)) == len(solutions) == len(EXERCISES)
