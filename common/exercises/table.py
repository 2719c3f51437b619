"""Exercises as tables: outcomes in a notebook, `show("3/guard")`, a stage's list for its README, wrong answers."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from . import place, variants
from .exercise import Exercise, every, find, shown

HEADER = ("exercise", "outcome", "what the check says")
KINDS = {"write": "write a part of the stage", "file": "a file of its own", "predict": "predict, then measure"}


@dataclass(frozen=True)
class Table:
    """A row for each exercise: its name and title, the outcome, and what the check says."""

    rows: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return "\n\n".join(f"{name}: {outcome}\n{said}" for name, outcome, said in self.rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align: left'>{title}</th>" for title in HEADER)
        rows = "".join(
            f"<tr style='vertical-align: top'><td>{html.escape(name)}</td><td>{html.escape(outcome)}</td>"
            f"<td style='text-align: left'><pre>{html.escape(said)}</pre></td></tr>"
            for name, outcome, said in self.rows
        )
        return f"<table><tr>{head}</tr>{rows}</table>"


def show(*names: str) -> Table:
    """Checks the learner's work on each of these exercises, such as "3/guard", and records what was solved.

    An exercise that was not begun has no work yet: its row says how to begin. Raises `UserError` for an unknown name.
    """
    return Table(tuple(_row(find(name)) for name in names))


def _row(exercise: Exercise) -> tuple[str, str, str]:
    name, folder = f"{exercise.id} ({exercise.title})", place.folder_of(exercise)
    if not folder.exists():
        begin = f"make check EX={exercise.id}\nputs its files into {shown(folder)}/, and its task is in\n"
        return name, "not begun", f"{begin}{shown(exercise.folder)}/README.md"
    from .checking import check

    try:
        verdict = check(exercise, folder)
    except UserError as error:  # this machine lacks something
        return name, "not checked", str(error)
    place.record(exercise, verdict.passed)
    outcome = "solved" if verdict.passed else "not yet"
    said = verdict.message or f"make solution EX={exercise.id} shows ours beside yours"
    return name, f"{outcome} ({verdict.seconds:.0f} s{verdict.where})", said


def of_stage(page: Path) -> str:
    """The exercises of the stage whose README is `page`, in order, in Markdown."""
    from ..tables import markdown

    here = [exercise for exercise in every() if exercise.folder.is_relative_to(page.parent)]
    rows = []
    for one in here:
        link = f"[`{one.id}`]({one.folder.relative_to(page.parent).as_posix()})"
        rows.append([link, one.title, KINDS[one.kind], f"{one.minutes} min", ", ".join(one.syllabus)])
    return markdown(["exercise", "title", "kind", "time", "practises"], rows, left=5)


def wrong_answers(page: Path) -> str:
    """For each exercise its wrong answers, each with words of what the learner is told then, in Markdown."""
    from ..tables import markdown

    rows = []
    for one in every():
        first = f"[{one.id}]({Path(os.path.relpath(one.folder, page.parent)).as_posix()})"
        for name in variants.wrong(one):
            said = " … ".join(f"`{words}`" for words in variants.says(one, name)).replace("|", "\\|")
            rows.append([first, name.replace("_", " "), said])
            first = ""
    return markdown(["exercise", "wrong answer", "words of what the learner is told"], rows, left=3)
