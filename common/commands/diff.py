"""`make diff-A-B`: shows what changes from one stage to another, which is the lesson of the stage."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from .. import stages
from ..errors import UserError
from ..paths import ROOT
from ..stages import Stage
from .steps import Texts, find_step, read_steps, texts_after_each

FIRST = ("lltm.py", "sequence.py", "setup.py")  # then the other modules, and csrc/


def show_diff(old: int, new: int, step: str = "") -> int:
    """Shows the code of two stages as one diff, or one step of it; the status is 0 whether they differ or not.

    Raises `UserError` for a stage without a cell, and for a step that the lesson of the new stage does not have.
    """
    sides = [stages.get_stage(old), stages.get_stage(new)]
    for stage in sides:
        if stage.kind not in ("cell", "sequence"):
            raise UserError(f"stage {stage.number} ({stage.title}) has no cell to compare; read its README")
    colour = sys.stdout.isatty()
    if step:
        print(step_text(*sides, step, colour), end="")
        return 0
    if new == old + 1 and read_steps(sides[1]):
        print(contents(*sides), end="\n\n")
    print(diff_text(*sides, colour), end="")
    return 0


def contents(old: Stage, new: Stage) -> str:
    """A list of the steps of a lesson, with the number of lines that each changes."""
    steps = read_steps(new)
    command = f"make diff-{old.number}-{new.number}"
    lines = [f"This diff is long. Read it in steps, in this order: {command} STEP={steps[0].name}, and so on."]
    for step, (before, after) in zip(steps, pairwise(texts_after_each(old, new, steps)), strict=True):
        count = len(re.findall(r"^[+-](?![+-]{2} )", diff_of_texts(before, after), re.MULTILINE))
        lines.append(f"  {step.name:14s}{count:4d} lines  {step.about}")
    return "\n".join(lines)


def step_text(old: Stage, new: Stage, name: str, colour: bool = False) -> str:
    """One step of the lesson from a stage to the next, as a diff after the line that describes it."""
    if new.number != old.number + 1:
        raise UserError(
            f"steps lead from a stage to the next one: make diff-{new.number - 1}-{new.number} STEP={name}"
        )
    steps = read_steps(new)
    step = find_step(steps, name, new)
    before, after = list(pairwise(texts_after_each(old, new, steps)))[steps.index(step)]
    return f"{step.about}\n\n{diff_of_texts(before, after, colour)}"


def diff_text(old: Stage, new: Stage, colour: bool = False) -> str:
    """The diff in git's format. A new file is shown completely; of one that is gone, only the name is shown."""
    sides = (old, new)
    names = {path.relative_to(stage.folder).as_posix() for stage in sides for path in stage.sources}
    folders = (stage.folder.relative_to(ROOT).as_posix() for stage in sides)
    return diff_of_folders(ROOT, *folders, in_order(names, old, new), colour)


def in_order(names: Iterable[str], old: Stage, new: Stage) -> list[str]:
    """The names of files in the order in which the steps of the lesson change them; the others come last."""
    steps = read_steps(new) if new.number == old.number + 1 else []
    of_steps = dict.fromkeys(name for step in steps for name in step.files)
    places = {name: number for number, name in enumerate(of_steps)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), place_of(name)))


def diff_of_texts(before: Texts, after: Texts, colour: bool = False) -> str:
    """The same for files that are given as texts. Git sees only those that differ: each takes a process."""
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    with tempfile.TemporaryDirectory() as temp:
        root = Path(temp)
        for folder, texts in (("before", before), ("after", after)):
            for name in names & texts.keys():
                path = root / folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(texts[name], encoding="utf-8")
        return diff_of_folders(root, "before", "after", sorted(names, key=place_of), colour)


def diff_of_folders(root: Path, old: str, new: str, names: Iterable[str], colour: bool) -> str:
    """The diffs of the files of these names, in their order, in two folders, which are given from `root`."""
    options = ["--no-index", "--irreversible-delete", f"--color={'always' if colour else 'never'}"]
    parts = []
    for name in names:
        sides = [f"{folder}/{name}" for folder in (old, new)]
        sides = [side if (root / side).is_file() else "/dev/null" for side in sides]
        done = subprocess.run(["git", "diff", *options, *sides], cwd=root, capture_output=True, text=True)
        parts.append(done.stdout)
    return "".join(parts)


def place_of(name: str) -> tuple[int, str]:
    """The place of a file in the diff: first what a reader should see first."""
    order = FIRST.index(name) if name in FIRST else len(FIRST) + ("/" in name)
    return order, name
