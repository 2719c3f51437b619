"""Outcomes of exercises as a table in a notebook: `show("3/guard")`."""

from __future__ import annotations

import html
from dataclasses import dataclass

from ..errors import UserError
from ..paths import display_path
from . import workspace
from .catalogue import find
from .exercise import Exercise

HEADER = ("exercise", "outcome", "what the check says")


@dataclass(frozen=True)
class Table:
    """A row for each exercise: its name and title, the outcome, and what the check says."""

    rows: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return "\n\n".join(f"{name}: {outcome}\n{message}" for name, outcome, message in self.rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align: left'>{title}</th>" for title in HEADER)
        rows = "".join(
            f"<tr style='vertical-align: top'><td>{html.escape(name)}</td><td>{html.escape(outcome)}</td>"
            f"<td style='text-align: left'><pre>{html.escape(message)}</pre></td></tr>"
            for name, outcome, message in self.rows
        )
        return f"<table><tr>{head}</tr>{rows}</table>"


def show(*names: str) -> Table:
    """Checks the learner's work on each of these exercises, such as "3/guard", and records what was solved.

    The row of an exercise that was not begun says how to begin. Raises `UserError` for an unknown name.
    """
    return Table(tuple(_row(find(name)) for name in names))


def _row(exercise: Exercise) -> tuple[str, str, str]:
    name, folder = f"{exercise.id} ({exercise.title})", workspace.folder_of(exercise)
    if not folder.exists():
        begin = f"make check EX={exercise.id}\ncreates its files in {display_path(folder)}/. The task is in\n"
        return name, "not begun", f"{begin}{display_path(exercise.folder)}/README.md"
    from .checking import check_folder

    try:
        verdict = check_folder(exercise, folder)
    except UserError as error:  # this machine lacks something
        return name, "not checked", str(error)
    workspace.record_check(exercise, verdict.passed)
    outcome = "solved" if verdict.passed else "not yet"
    message = verdict.message or f"make solution EX={exercise.id} compares your solution with ours"
    return name, f"{outcome} ({verdict.seconds:.0f} s{verdict.where})", message
