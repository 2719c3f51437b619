"""Exercises as tables of Markdown: a stage's list for its README, and every wrong answer."""

from __future__ import annotations

import os
from pathlib import Path

from ...exercises import every, variants
from ...paths import ROOT
from ..markdown import markdown_table
from ..syllabus import line_anchor

SYLLABUS = ROOT / "docs" / "syllabus.md"
KIND_LABELS = {"write": "write a part of the stage", "file": "a file of its own", "predict": "predict, then measure"}


def exercises_table(page: Path) -> str:
    """The exercises of the stage whose README is `page`, in order, in Markdown."""
    syllabus = Path(os.path.relpath(SYLLABUS, page.parent)).as_posix()
    here = [exercise for exercise in every() if exercise.folder.is_relative_to(page.parent)]
    rows = []
    for one in here:
        link = f"[`{one.id}`]({one.folder.relative_to(page.parent).as_posix()})"
        practised = ", ".join(f"[{number}]({syllabus}#{line_anchor(number)})" for number in one.syllabus)
        rows.append([link, one.title, KIND_LABELS[one.kind], f"{one.minutes} min", practised])
    return markdown_table(["exercise", "title", "kind", "time", "practises"], rows, left=5)


def wrong_answers_table(page: Path) -> str:
    """For each exercise its wrong answers, each with parts of the message that the learner gets, in Markdown."""
    rows = []
    for one in every():
        first = f"[{one.id}]({Path(os.path.relpath(one.folder, page.parent)).as_posix()})"
        for name in variants.wrong(one):
            said = " … ".join(f"`{part}`" for part in variants.expected_messages(one, name)).replace("|", "\\|")
            rows.append([first, name.replace("_", " "), said])
            first = ""
    return markdown_table(["exercise", "wrong answer", "parts of the message that the learner gets"], rows, left=3)
