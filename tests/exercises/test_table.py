"""Exercises as tables: `show` in a notebook, the list in a stage's README, and the pointers in the notebooks."""

from __future__ import annotations

import re

import pytest

from common import stages
from common.errors import UserError
from common.exercises import every, find, show, variants, workspace
from common.pages import notebooks
from common.pages.tables.exercise_tables import exercises_table

NAME = "4/registers_and_time"
STAGES = (0, 1, 2, 3, 4)


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A learner's folder of its own."""
    monkeypatch.setenv("WORK", str(tmp_path))
    return tmp_path


def test_an_exercise_that_was_not_begun_says_how(work):
    [(name, outcome, said)] = show(NAME).rows
    assert name.startswith(NAME)
    assert outcome == "not begun"
    assert f"make check EX={NAME}" in said
    assert not any(work.iterdir()), "looking has begun it"


@pytest.mark.needs("g++")
def test_the_learner_s_answer_is_checked_and_recorded(work):
    exercise = find(NAME)
    folder = workspace.begin(exercise)
    [(_, outcome, said)] = show(NAME).rows
    assert outcome.startswith("not yet")
    assert "budget has no answer yet" in said
    for name, text in variants.solution(exercise).items():
        (folder / name).write_text(text)
    [(_, outcome, _)] = show(NAME).rows
    assert outcome.startswith("solved")
    assert workspace.read_state(exercise).passed


def test_the_table_shows_what_a_learner_wrote_as_text(work):
    page = show(NAME)._repr_html_()
    assert page.count("<tr") == 2
    changed = type(show(NAME))((("x", "not yet", "expected <b>1</b>"),))
    assert "&lt;b&gt;1&lt;/b&gt;" in changed._repr_html_()


def test_an_unknown_name_is_an_error():
    with pytest.raises(UserError, match="there is no exercise"):
        show("4/no_such_exercise")


@pytest.mark.parametrize("number", STAGES)
def test_a_stage_s_readme_lists_its_exercises_in_order(number):
    listed = re.findall(r"\[`(\d/\w+)`\]", exercises_table(stages.find_stage(number).folder / "README.md"))
    assert listed == [one.id for one in every() if one.stage == number]


@pytest.mark.parametrize("number", STAGES)
def test_notebooks_point_to_every_exercise_of_their_stage_and_to_no_other(number):
    texts = [
        source.read_text(encoding="utf-8")
        for source in notebooks.notebook_sources()
        if re.match(rf"0{number}[a-z]?_", source.stem)
    ]
    pointed = set(re.findall(r"""(?:`|show\("|EX=)(\d/\w+)""", "\n".join(texts)))
    assert pointed == {one.id for one in every() if one.stage == number}
    for text in texts:
        assert len(re.findall(r"^show\(", text, re.MULTILINE)) == 1, "a notebook runs one check, and a cheap one"
        assert not re.search(r"^(def show\b|show =)", text, re.MULTILINE), "the notebook's own `show` hides ours"
