"""docs/teaching.md: the plan names every exercise once, with minutes that add up."""

from __future__ import annotations

import re

from common.exercises import every
from common.paths import ROOT

PAGE = (ROOT / "docs" / "teaching.md").read_text()
PLAN = PAGE.partition("## Four afternoons")[2].partition("\n## ")[0]


def test_the_plan_has_every_exercise_once():
    named = re.findall(r"`(\d/\w+)`", "\n".join(line for line in PLAN.splitlines() if line.startswith("|")))
    assert sorted(named) == sorted(exercise.id for exercise in every())


def test_the_minutes_of_the_plan_add_up():
    minutes = {exercise.id: exercise.minutes for exercise in every()}
    cells = re.findall(r"\| ([^|]*`\d/[^|]*) \((\d+) min\)", PLAN)
    assert len(cells) == 2 * 12  # in class and at home; four afternoons, three before and five after
    for cell, said in cells:
        assert sum(minutes[name] for name in re.findall(r"`(\d/\w+)`", cell)) == int(said), cell


def test_variables_that_the_page_names_are_read():
    sources = "\n".join(path.read_text() for path in [ROOT / "Makefile", *(ROOT / "common").rglob("*.py")])
    for name in ("WORK", "BUILD_DIR", "EXERCISES", "SANDBOX", "IMAGE", "JOBS", "CSV", "JSON", "EX", "DIR"):
        assert f"{name}=" in PAGE or f"`{name}" in PAGE
        assert re.search(rf'\$\(or \$\({name}\)|\$\({name}\)|environ.get\("{name}"', sources), name
