"""`make next`, `check`, `hint`, `solution`, `reset` and `progress`."""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path

from .. import stages
from ..console import say, wrapped
from ..errors import UserError
from . import place, variants
from .exercise import Exercise, every, find, shown

MARKS = {True: "✓", False: "·", None: " "}  # solved, begun, not yet begun


def next_one() -> int:
    """Says what to do now, and where; makes the folder for it."""
    exercise = first_open()
    if exercise is None:
        say("All exercises are solved. `make progress` shows them, `make solution EX=...` ours beside yours.")
        return 0
    introduce(exercise)
    say("\nThen: make check     Stuck: make hint")
    exercises = every()
    if exercise.source.kind == "primer" and exercise == exercises[0]:
        cell = next(one for one in exercises if one.source.kind != "primer")
        say(f"Stage {exercise.stage} is optional. To begin with the cell: make check EX={cell.id}")
    return 0


def introduce(exercise: Exercise) -> None:
    """The task of an exercise, and where the learner's files are; makes the folder for them."""
    folder = begun(exercise)
    exercises = every()
    number = exercises.index(exercise) + 1
    say(f"Exercise {exercise.id} ({number} of {len(exercises)}): {exercise.minutes} minutes, {exercise.size}\n")
    say(wrapped(readable(exercise)))
    say(f"\nYour files are in {shown(folder)}/:")
    starter = variants.starter(exercise)
    todos = variants.todos(starter)
    for file, line, text in todos:
        say(f"  {shown(folder / file)}:{line}")
        say(textwrap.indent(wrapped(text), "      "))
    for file, text in variants.solution(exercise).items():
        if not todos and text != starter.get(file):
            say(f"  {shown(folder / file)}")


def check(name: str | None) -> int:
    """Checks one exercise, the current one, or with `all` each that was begun."""
    if name == "all":
        begun = [one for one in every() if place.folder_of(one).exists()]
        if not begun:
            raise UserError("nothing is begun yet: make next")
        results = [check_one(one) for one in begun]
        say(f"\n{sum(results)} of {len(results)} that you began are solved.")
        return 0 if all(results) else 1
    return 0 if check_one(current(name)) else 1


def check_one(exercise: Exercise) -> bool:
    """Checks the learner's folder and says how it went."""
    from .checking import check as judge

    if not place.folder_of(exercise).exists():
        introduce(exercise)
        say()
    folder = begun(exercise)
    verdict = judge(exercise, folder)
    place.record(exercise, verdict.passed)
    if verdict.printed:
        lines = verdict.printed.splitlines()
        say("Your code printed:")
        say(
            "\n".join(f"  | {line}" for line in lines[:20])
            + (f"\n  | ... {len(lines) - 20} lines more" if lines[20:] else "")
        )
    if verdict.passed:
        say(f"exercise {exercise.id}: solved ({verdict.seconds:.1f} s{verdict.where})")
        following = first_open()
        goes_on = f"make next goes on, with {following.id}" if following else "That was the last one"
        if verdict.message:
            say(verdict.message)
        say(f"{goes_on}; make solution shows ours beside yours.")
        return True
    say(f"exercise {exercise.id}: not yet ({verdict.seconds:.1f} s{verdict.where})")
    say(verdict.message)
    hints, seen = len(exercise.hints), place.state(exercise).hints
    if seen < hints:
        say(f"\nStuck? make hint{ex_of(exercise)} ({seen} of {hints} shown)")
    return False


def hint(name: str | None) -> int:
    """Shows one hint more each time."""
    exercise = current(name)
    seen = place.state(exercise).hints
    hints = exercise.hints
    if seen < len(hints):
        seen = place.update(exercise, hints=seen + 1).hints
    for number, text in enumerate(hints[:seen], 1):
        say(f"Hint {number} of {len(hints)} for {exercise.id}:\n{wrapped(text)}\n")
    if seen == len(hints):
        say(f"That is the last one. make solution EX={exercise.id} shows ours.")
    return 0


def solution(name: str | None, take: bool = False) -> int:
    """Shows our solution as a diff against the learner's files: of the exercise solved last, if none is named.

    With `take` the learner's folder becomes ours, and what was in it is kept aside.
    """
    exercise = current(name, solved=True)
    if take:
        return taken(exercise)
    folder = place.folder_of(exercise)
    ours = variants.solution(exercise)
    yours = {file: _read(folder / file) for file in ours} if folder.exists() else variants.starter(exercise)
    say(f"Exercise {exercise.id}: yours (-) and ours (+)")
    shown_any = False
    for file, text in ours.items():
        lines = list(difflib.unified_diff(
            yours.get(file, "").splitlines(), text.splitlines(), f"yours/{file}", f"ours/{file}", lineterm="", n=2
        ))  # fmt: skip
        if lines:
            shown_any = True
            say("\n".join(coloured(line) for line in lines) if sys.stdout.isatty() else "\n".join(lines))
    if not shown_any:
        say("They are the same, letter for letter.")
    else:
        say(f"\nTo go on with ours: make solution EX={exercise.id} TAKE=1 (yours is kept aside)")
    return 0


def taken(exercise: Exercise) -> int:
    """Puts the learner's folder aside and our solution in its place."""
    kept = place.reset(exercise, variants.solution(exercise))
    say(f"{shown(place.folder_of(exercise))}/ has our solution now.")
    if kept:
        say(f"What you had is in {shown(kept)}/.")
    return 0


def reset(name: str | None) -> int:
    """Puts the learner's folder aside and makes a fresh one."""
    exercise = current(name)
    kept = place.reset(exercise)
    say(f"{shown(place.folder_of(exercise))}/ is as new.")
    if kept:
        say(f"What you had is in {shown(kept)}/.")
    return 0


def progress() -> int:
    """A bar for each stage."""
    exercises = every()
    numbers = list(dict.fromkeys(exercise.stage for exercise in exercises))
    widest = max(sum(exercise.stage == number for exercise in exercises) for number in numbers)
    for number in numbers:
        here = [exercise for exercise in exercises if exercise.stage == number]
        done = [exercise for exercise in here if place.state(exercise).passed]
        bar = ("█" * len(done) + "░" * (len(here) - len(done))).ljust(widest)
        points = f"{sum(exercise.points for exercise in done)} of {sum(exercise.points for exercise in here)} points"
        say(f"Stage {number}  {bar}  {len(done)} of {len(here)}, {points}   {stages.find(number).title}")
        for exercise in here:
            known = place.state(exercise)
            mark = MARKS[True if known.passed else False if place.folder_of(exercise).exists() else None]
            hints = f", {known.hints} hint{'s' if known.hints > 1 else ''}" if known.hints else ""
            say(f"  {mark} {exercise.id:<28} {exercise.title} ({exercise.minutes} min{hints})")
    solved = sum(bool(place.state(exercise).passed) for exercise in exercises)
    say(f"\n{solved} of {len(exercises)} solved ({MARKS[True]}); {MARKS[False]} is begun."
        + (f" Next: {first_open().id} (make next)" if first_open() else ""))  # fmt: skip
    return 0


def prove(name: str) -> int:
    """Shows what the starter, the solution and each wrong answer of an exercise are told: for its author to read."""
    from .checking import check as judge

    exercise = find(name)
    wrong = {f"wrong/{name}": files for name, files in variants.wrong(exercise).items()}
    for name, files in {
        "starter": variants.starter(exercise), "solution": variants.solution(exercise), **wrong
    }.items():  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            place.write(files, Path(folder) / exercise.name)
            verdict = judge(exercise, Path(folder) / exercise.name)
        say(f"--- {name}: {verdict.kind} ({verdict.seconds:.1f} s, {verdict.target})")
        say(f"{verdict.message}\n" if verdict.message else "")
    return 0


def begun(exercise: Exercise) -> Path:
    """The learner's folder, made if it is not there, and with what an update of the workbook has changed."""
    folder = place.begin(exercise)
    changed = place.renew(exercise)
    if changed.renewed:
        say(f"The workbook has newer files, and you had not changed yours: renewed {', '.join(changed.renewed)}.\n")
    if changed.kept:
        say(f"The workbook has newer files, but you changed yours, so they are kept: {', '.join(changed.kept)}.\n"
            f"make reset{ex_of(exercise)} gives you the new ones, and keeps yours aside.\n")  # fmt: skip
    return folder


def first_open() -> Exercise | None:
    """The first exercise that has not been solved; None when all have been.

    Whoever has begun with a stage behind the primer has skipped that: its exercises come last.
    """
    exercises = every()
    opened = [exercise for exercise in exercises if not place.state(exercise).passed]
    solved = {exercise.stage for exercise in exercises if exercise not in opened}
    primers = {stage.number for stage in stages.STAGES if stage.kind == "primer"}
    skipped = primers - solved if solved else set()
    return min(opened, key=lambda exercise: exercise.stage in skipped, default=None)


def current(name: str | None, solved: bool = False) -> Exercise:
    """The exercise of that name; without one, the first open one.

    With `solved`, or when none is open, it is the one that was solved last.
    """
    if name:
        return find(name)
    done = [exercise for exercise in every() if place.state(exercise).passed]
    opened = first_open()
    if opened is None or (solved and done):
        return max(done, key=lambda exercise: place.state(exercise).passed)
    return opened


def ex_of(exercise: Exercise) -> str:
    """What a command needs to mean this exercise."""
    return "" if exercise == first_open() else f" EX={exercise.id}"


def readable(exercise: Exercise) -> str:
    """The task for a terminal: a link is its text and where that lies."""

    def place_of(link: re.Match) -> str:
        if "://" in link[2]:
            return f"{link[1]} ({link[2]})"
        place = shown(Path(os.path.normpath(exercise.folder / link[2].partition("#")[0])))
        return place if place.endswith(link[1].strip("`")) else f"{link[1]} ({place})"

    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", place_of, exercise.task.strip())


def coloured(line: str) -> str:
    """A line of a diff for a terminal."""
    colour = {"+": "32", "-": "31", "@": "36"}.get(line[:1])
    return f"\033[{colour}m{line}\033[0m" if colour else line


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
