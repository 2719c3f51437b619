"""Shared helpers for tests of the exercise runner: a small exercise, and a learner who can submit any answer."""

from __future__ import annotations

import signal
from pathlib import Path

from common.exercises import exercise, variants, workspace
from common.exercises.checking import Verdict, check_folder
from common.exercises.exercise import Exercise

MANIFEST = """[exercise]
order = {order}
kind = file
title = A number
minutes = 2
size = one line
syllabus = 1.1
seconds = 3
"""
CHECK = """from common.exercises.judge import require


def check(work):
    require(work.load("answer").number() == 42, "the number is 42")
"""
ANSWER = """def number():
    # BEGIN SOLUTION: return the number.
    return 42
    # BEGIN STARTER
    # return 0
    # END STARTER
    # END SOLUTION
"""


def write(
    folder: Path, name: str = "number", order: int = 10, rule: str = CHECK, answer: str = ANSWER, stage: int = 1
) -> Path:
    """Writes a small exercise of a stage into `folder`/`stage`/`name`: one Python file, with nothing to build."""
    here = folder / str(stage) / name
    files = {
        "exercise.ini": MANIFEST.format(order=order),
        "README.md": "# A number\n\nReturn 42.\n",
        "hints.md": "Which number?\n---\nIt is 42.\n",
        "check.py": rule,
        "files/answer.py": answer,
        "known_answers.txt": "=== wrong one_less\nsays: the number is 42\n== SOLUTION.py\nreturn 41\n",
    }
    workspace.write_files(files, here)
    return here


def read(folder: Path, **changes: object) -> Exercise:
    """The exercise that `write` makes."""
    return exercise.read_exercise(write(folder, **changes), 1)


def checked(one: Exercise, folder: Path, answer: str) -> Verdict:
    """The verdict on a file answer.py."""
    workspace.write_files({**variants.starter(one), "answer.py": answer}, folder)
    return check_folder(one, folder)


def hear_ctrl_c() -> None:
    """Makes a new process react to Ctrl-C, which a process started in the background, as in CI, ignores."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
