"""`make next`, `check`, `hint`, `solution`, `reset` and `progress`."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from .. import stages
from ..console import say, wrapped
from ..errors import UserError
from ..paths import display_path
from . import variants, workspace
from .catalogue import every, find
from .exercise import Exercise

MARKS = {True: "✓", False: "·", None: " "}  # solved, begun, not yet begun
NOT_YET = 3  # the exit status of a check that did not pass; that of an error is 1


def show_next(name: str | None = None) -> int:
    """Says what to do next, and where; makes the folder for it.

    Without a name, this is the exercise that was named last or, once that is solved, the first unsolved one.
    """
    exercise, following = find_exercise(name) if name else find_next(), first_unsolved()
    if exercise != find_remembered():
        workspace.forget()
    if exercise is None:
        say("All exercises are solved. `make progress` lists them; `make solution EX=...` compares yours with ours.")
        return 0
    show_task(exercise)
    say(f"\nWhen done: make check{work_option()}     If stuck: make hint{work_option()}")
    if following not in (None, exercise):
        say(f"The first exercise that you have not solved yet: make next{name_option(following)}")
    primer = next((one for one in every() if one.source.kind == "primer"), None)
    if primer and not any(workspace.read_state(one).tries for one in every()):
        say(f"New to autograd.Function? Begin with stage {primer.stage}: make next{name_option(primer)}")
    return 0


def show_task(exercise: Exercise) -> None:
    """Prints the task of an exercise and where the learner's files are; makes the folder for them."""
    folder = prepare_folder(exercise)
    of_stage = [one for one in every() if one.stage == exercise.stage]
    place = f"{of_stage.index(exercise) + 1} of {len(of_stage)} in stage {exercise.stage}"
    say(f"Exercise {exercise.id} ({place}): {exercise.minutes} minutes, {exercise.size}\n")
    say(wrapped(format_task(exercise)))
    say(f"\nYour files are in {display_path(folder)}/:")
    starter = variants.starter(exercise)
    todos = variants.find_todos(starter)
    for file, line, text in todos:
        say(f"  {display_path(folder / file)}:{line}")
        say(textwrap.indent(wrapped(text), "      "))
    for file, text in variants.solution(exercise).items():
        if not todos and text != starter.get(file):
            say(f"  {display_path(folder / file)}")


def check_work(name: str | None, starter: bool = False) -> int:
    """Checks one exercise, by default the current one; `all` checks every exercise that was begun.

    With `starter`, an unchanged starter is built and checked, too.
    """
    if name == "all":
        started = [one for one in every() if workspace.folder_of(one).exists()]
        if not started:
            raise UserError(f"you have not begun any exercise yet: make next{work_option()}")
        results = [check_and_report(one, starter) for one in started]
        say(f"\n{sum(results)} of {len(results)} exercises that you began are solved.")
        return 0 if all(results) else NOT_YET
    exercise = find_exercise(name)
    passed = check_and_report(exercise, starter)
    if not name and (newer := find_newer(exercise)):
        say(f"\nYour files of {newer.id} are newer. To check those: make check{name_option(newer)}")
    return 0 if passed else NOT_YET


def check_and_report(exercise: Exercise, starter: bool = False) -> bool:
    """Checks the learner's folder and says how it went. An unchanged starter is only checked with `starter`."""
    start = time.perf_counter()
    if not workspace.folder_of(exercise).exists():
        show_task(exercise)
        say()
    folder = prepare_folder(exercise)
    if not starter and variants.is_unchanged(exercise, folder):
        workspace.record_check(exercise, passed=False)
        say(f"exercise {exercise.id}: not yet")
        say(where_to_begin(exercise, folder))
        say_next_hint(exercise)
        return False
    from .checking import check_folder  # imports torch

    verdict = check_folder(exercise, folder)
    took = f"{time.perf_counter() - start:.1f} s{verdict.where}"
    workspace.record_check(exercise, verdict.passed)
    if verdict.printed:
        lines = verdict.printed.splitlines()
        say("Your code printed:")
        say(
            "\n".join(f"  | {line}" for line in lines[:20])
            + (f"\n  | ... {len(lines) - 20} more lines" if lines[20:] else "")
        )
    if verdict.passed:
        say(f"exercise {exercise.id}: solved ({took})")
        following = find_next()
        option = work_option()
        next_step = f"make next{option} continues with {following.id}" if following else "That was the last exercise"
        if verdict.message:
            say(verdict.message)
        say(f"{next_step}; make solution{option} compares your solution with ours.")
        return True
    say(f"exercise {exercise.id}: not yet ({took})")
    say(verdict.message)
    say_next_hint(exercise)
    return False


def where_to_begin(exercise: Exercise, folder: Path) -> str:
    """What a check of an unchanged starter prints: the places to fill in, or the files to change."""
    first = f"This is still the starter, so nothing was built or run. Begin here, in {display_path(folder)}/:"
    lines = [first, *variants.starting_points(exercise)]
    if exercise.kind == "file" and not variants.find_todos(variants.starter(exercise)):
        lines.append(f"To check the starter anyway: make check{exercise_option(exercise)} STARTER=1")
    return "\n".join(lines)


def say_next_hint(exercise: Exercise) -> None:
    """Says how to get the next hint, if there is one."""
    hints, seen = len(exercise.hints), workspace.read_state(exercise).hints
    if seen < hints:
        say(f"\nStuck? make hint{exercise_option(exercise)} ({seen} of {hints} shown)")


def show_hint(name: str | None) -> int:
    """Shows one more hint each time."""
    exercise = find_exercise(name)
    seen = workspace.read_state(exercise).hints
    hints = exercise.hints
    if seen < len(hints):
        seen = workspace.update_state(exercise, hints=seen + 1).hints
    for number, text in enumerate(hints[:seen], 1):
        say(f"Hint {number} of {len(hints)} for {exercise.id}:\n{wrapped(text)}\n")
    if seen == len(hints):
        say(f"That is the last hint. make solution{name_option(exercise)} shows our solution.")
    return 0


def show_solution(name: str | None, take: bool = False) -> int:
    """Shows our solution as a diff against the learner's files.

    Without a name, this is the exercise that was named last, or else the one that was solved last.

    With `take`, our solution replaces the learner's files, which are moved to a backup.
    """
    exercise = find(name) if name else find_remembered() or find_last_solved() or first_unsolved()
    if take:
        return take_solution(exercise)
    folder = workspace.folder_of(exercise)
    ours = variants.solution(exercise)
    yours = {file: _read(folder / file) for file in ours} if folder.exists() else variants.starter(exercise)
    say(f"Exercise {exercise.id}: your solution (-) and ours (+)")
    differs = False
    for file, text in ours.items():
        lines = list(difflib.unified_diff(
            yours.get(file, "").splitlines(), text.splitlines(), f"yours/{file}", f"ours/{file}", lineterm="", n=2
        ))  # fmt: skip
        if lines:
            differs = True
            say("\n".join(colour_line(line) for line in lines) if sys.stdout.isatty() else "\n".join(lines))
    if not differs:
        say("The two are identical.")
    else:
        say(f"\nTo continue with ours: make solution{name_option(exercise)} TAKE=1 (yours is backed up)")
    return 0


def take_solution(exercise: Exercise) -> int:
    """Moves the learner's folder to a backup and puts our solution in its place."""
    backup = workspace.reset(exercise, variants.solution(exercise))
    workspace.remember(exercise)
    say(f"{display_path(workspace.folder_of(exercise))}/ now contains our solution.")
    if backup:
        say(f"Your earlier files are in {display_path(backup)}/.")
    return 0


def reset_exercise(name: str | None) -> int:
    """Moves the learner's folder to a backup and makes a fresh one."""
    exercise = find_exercise(name)
    backup = workspace.reset(exercise)
    say(f"{display_path(workspace.folder_of(exercise))}/ is reset to the starter.")
    if backup:
        say(f"Your earlier files are in {display_path(backup)}/.")
    return 0


def show_progress() -> int:
    """Prints a progress bar for each stage."""
    exercises = every()
    numbers = list(dict.fromkeys(exercise.stage for exercise in exercises))
    widest = max(sum(exercise.stage == number for exercise in exercises) for number in numbers)
    for number in numbers:
        here = [exercise for exercise in exercises if exercise.stage == number]
        done = [exercise for exercise in here if workspace.read_state(exercise).passed]
        bar = ("█" * len(done) + "░" * (len(here) - len(done))).ljust(widest)
        points = f"{sum(exercise.points for exercise in done)} of {sum(exercise.points for exercise in here)} points"
        say(f"Stage {number}  {bar}  {len(done)} of {len(here)}, {points}   {stages.find_stage(number).title}")
        for exercise in here:
            state = workspace.read_state(exercise)
            mark = MARKS[True if state.passed else False if workspace.folder_of(exercise).exists() else None]
            hints = f", {state.hints} hint{'s' if state.hints > 1 else ''}" if state.hints else ""
            say(f"  {mark} {exercise.id:<28} {exercise.title} ({exercise.minutes} min{hints})")
    solved = sum(bool(workspace.read_state(exercise).passed) for exercise in exercises)
    following = find_next()
    next_step = f" Next: {following.id} (make next{work_option()})" if following else ""
    say(f"\n{solved} of {len(exercises)} solved ({MARKS[True]}); {MARKS[False]} means begun.{next_step}")
    return 0


def show_verdicts(name: str) -> int:
    """Shows, for the author of an exercise, what its check says about the starter and each right or wrong answer."""
    from .checking import check_folder

    exercise = find(name)
    wrong = {f"wrong/{name}": files for name, files in variants.wrong(exercise).items()}
    for name, files in {
        "starter": variants.starter(exercise), "solution": variants.solution(exercise), **wrong
    }.items():  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            workspace.write_files(files, Path(folder) / exercise.name)
            verdict = check_folder(exercise, Path(folder) / exercise.name)
        say(f"--- {name}: {verdict.kind} ({verdict.seconds:.1f} s, {verdict.target})")
        say(f"{verdict.message}\n" if verdict.message else "")
    return 0


def prepare_folder(exercise: Exercise) -> Path:
    """The learner's folder, created if missing and updated with what has changed in the workbook."""
    folder = workspace.begin(exercise)
    update = workspace.update_folder(exercise)
    if update.updated:
        say("The workbook has newer files, and you had not changed yours, so these were updated: "
            f"{', '.join(update.updated)}.\n")  # fmt: skip
    if update.conflicts:
        say("The workbook has newer files, but you changed yours, so yours were kept: "
            f"{', '.join(update.conflicts)}.\n"
            f"make reset{exercise_option(exercise)} installs the new files and backs up yours.\n")  # fmt: skip
    return folder


def first_unsolved() -> Exercise | None:
    """The first unsolved exercise; None when all are solved.

    The primer's exercises come last, unless the learner has solved one of them.
    """
    exercises = every()
    opened = [exercise for exercise in exercises if not workspace.read_state(exercise).passed]
    solved = {exercise.stage for exercise in exercises if exercise not in opened}
    skipped = {exercise.stage for exercise in opened if exercise.source.kind == "primer"} - solved
    return min(opened, key=lambda exercise: exercise.stage in skipped, default=None)


def find_next() -> Exercise | None:
    """What `make next` shows: the exercise that was named last if it is unsolved, else the first unsolved one."""
    remembered = find_remembered()
    return remembered if remembered and not workspace.read_state(remembered).passed else first_unsolved()


def find_remembered() -> Exercise | None:
    """The exercise that was named last, until `make next` moves on; None if there is none."""
    name = workspace.read_remembered()
    return next((exercise for exercise in every() if exercise.id == name), None)


def find_last_solved() -> Exercise | None:
    """The exercise that was solved last."""
    done = [exercise for exercise in every() if workspace.read_state(exercise).passed]
    return max(done, key=lambda exercise: workspace.read_state(exercise).passed, default=None)


def find_exercise(name: str | None) -> Exercise:
    """The exercise of that name, which is then remembered; without a name, the current exercise."""
    if not name:
        return find_current()
    exercise = find(name)
    workspace.remember(exercise)
    return exercise


def find_current() -> Exercise:
    """The exercise that was named last, else the first unsolved one; when all are solved, the one solved last."""
    return find_remembered() or first_unsolved() or find_last_solved()


def find_newer(exercise: Exercise) -> Exercise | None:
    """The unsolved exercise whose files the learner changed last, if this was after those of `exercise`."""
    others = [one for one in every() if one != exercise and not workspace.read_state(one).passed]
    latest = max(others, key=last_change, default=None)
    return latest if latest and last_change(latest) > last_change(exercise) else None


def last_change(exercise: Exercise) -> float:
    """When the learner last changed a file of an exercise, in seconds since 1970; 0 if nothing is changed."""
    folder = workspace.folder_of(exercise)
    if not folder.exists() or variants.is_unchanged(exercise, folder):
        return 0
    files = (folder / name for name in variants.starter(exercise))
    return max((file.stat().st_mtime for file in files if file.exists()), default=0)


def work_option() -> str:
    """The option that makes a command use the learner's folder, if it is not the usual one."""
    return f" WORK={shlex.quote(os.environ['WORK'])}" if os.environ.get("WORK") else ""


def exercise_option(exercise: Exercise) -> str:
    """The options that make a command refer to this exercise of the learner's."""
    return work_option() if exercise == find_current() else name_option(exercise)


def name_option(exercise: Exercise) -> str:
    """The same, whatever the current exercise is."""
    return f" EX={exercise.id}{work_option()}"


def format_task(exercise: Exercise) -> str:
    """The task as text for a terminal: each link becomes its text and the path of its target."""

    def name_target(link: re.Match) -> str:
        if "://" in link[2]:
            return f"{link[1]} ({link[2]})"
        path = display_path(Path(os.path.normpath(exercise.folder / link[2].partition("#")[0])))
        return path if path.endswith(link[1].strip("`")) else f"{link[1]} ({path})"

    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", name_target, exercise.task.strip())


def colour_line(line: str) -> str:
    """A line of a diff for a terminal."""
    colour = {"+": "32", "-": "31", "@": "36"}.get(line[:1])
    return f"\033[{colour}m{line}\033[0m" if colour else line


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
