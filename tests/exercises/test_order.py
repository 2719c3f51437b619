"""`make next` leads through the exercises in the order in which the notebooks name them, and begins where they do."""

from __future__ import annotations

import re

import pytest

from common.exercises import commands, every
from common.paths import ROOT

YOUR_TURN = re.compile(r"^# \*\*Your turn:\*\*.*\n(?:# .*\n)*", re.MULTILINE)


def named_in_notebooks() -> list[str]:
    """The exercises as the notebooks come to them."""
    pages = [path.read_text() for path in sorted((ROOT / "notebooks").glob("0*.py"))]
    cells = [cell for page in pages for cell in YOUR_TURN.findall(page)]
    return list(dict.fromkeys(name for cell in cells for name in re.findall(r"\b\d/\w+", cell)))


@pytest.mark.parametrize("stage", sorted({exercise.stage for exercise in every()}))
def test_the_exercises_of_a_stage_come_as_in_its_notebooks(stage):
    ours = [exercise.id for exercise in every() if exercise.stage == stage]
    assert ours == [name for name in named_in_notebooks() if name.startswith(f"{stage}/")]


def test_next_begins_with_the_notebook_that_the_readme_puts_first(tmp_path, monkeypatch):
    monkeypatch.setenv("WORK", str(tmp_path))
    page = (ROOT / "README.md").read_text()
    first = re.search(r"take\s+`(0\w+)`", page)[1]
    assert f'show("{commands.first_unsolved().id}")' in (ROOT / "notebooks" / f"{first}.py").read_text()
