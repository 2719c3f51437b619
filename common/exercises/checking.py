"""Checks a folder: `check_folder(find("3/guard"), folder)` returns a `Verdict`, whatever the folder contains."""

from __future__ import annotations

import importlib.util
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from . import variants
from .exercise import Exercise
from .failures import BuildFailure, Failure
from .judging.assertions import unchanged
from .judging.work import Work
from .runner.process import LearnerError, Stopped
from .runner.target import exercise_targets

if TYPE_CHECKING:
    from .grading.isolation import Isolation

OUTCOMES = ("passed", "wrong", "build", "error", "crash", "time", "checker")


@dataclass(frozen=True)
class Verdict:
    """The result of a check. `message` is all that the learner sees; `kind` is one of `OUTCOMES`.

    "passed": `message` is what the check returned, for example its counts. It is usually empty.

    "wrong": the result is not the expected one; "build": the code does not compile; "error": it raised an exception;
    "crash": the process died; "time": it did not answer in time; "checker": the check itself failed, which is not the
    learner's mistake.
    """

    exercise: str
    passed: bool
    kind: str
    message: str
    seconds: float
    target: str
    printed: str = ""  # by the learner's code

    @property
    def where(self) -> str:
        """Where the check ran, shown after the seconds; empty for a check that runs on any machine."""
        return {"cuda": ", on the emulator and the GPU", "emulator": ", on the emulator"}.get(self.target, "")


def check_folder(
    exercise: Exercise,
    folder: Path,
    timeout: float | None = None,
    target: str | None = None,
    seed: int | None = None,
    isolation: Isolation | None = None,
    start_early: bool = True,
) -> Verdict:
    """Runs the check of an exercise on a learner's folder.

    `timeout` is in seconds and limits the learner's code alone. `target` is one of the stage's targets; without it,
    the check runs on each target that `exercise_targets` names until it fails on one.
    `seed` repeats the random numbers of an earlier check. `isolation` runs untrusted work in sandboxes.
    With `start_early` the learner's process starts while the compiler runs, which is faster; without it, the process
    starts only when there is something to run in it, which uses less processor time.
    Raises `UserError` only when this machine cannot check the exercise at all.
    """
    start = time.perf_counter()
    targets = [target] if target else exercise_targets(exercise)
    for one in targets:
        work = Work(exercise, Path(folder).resolve(), one, timeout, seed, isolation)
        work.start_early = start_early
        kind, message = run_check(work)
        if kind != "passed":
            break
    if one != targets[0] and kind != "passed":
        message = f"The emulator found nothing wrong, but on the GPU:\n{message}"
    seconds = time.perf_counter() - start
    return Verdict(exercise.id, kind == "passed", kind, message, seconds, work.target, work.printed)


def run_check(work: Work) -> tuple[str, str]:
    """The kind and the message of a `Verdict` on the target of `work`. Closes `work`."""
    exercise, folder = work.exercise, work.folder
    kind, message = "passed", ""
    try:
        if work.start_early and (
            exercise.kind == "write" or any(path.name != "setup.py" for path in folder.glob("*.py"))
        ):
            work.start()  # imports torch while we do, and while the compiler runs
        check = load_check(exercise)
        missing = [name for name in variants.starter(exercise) if not (folder / name).is_file()]
        if missing:
            raise Failure(f"{missing[0]} is missing. `make reset` makes a fresh folder and keeps your files")
        message = check(work) or ""
        for file, why in work.relied_on.items():
            unchanged(work, file, why)
    except BuildFailure as error:
        kind, message = "build", str(error)
    except AssertionError as error:
        kind, message = "wrong", str(error)
    except LearnerError as error:
        kind, message = "error", describe_exception(error)
    except Stopped as error:
        kind, message = error.kind, str(error)
    except UserError:
        raise
    except Exception as error:
        kind, message = "checker", f"the check itself failed; this is not your mistake.\n{traceback.format_exc()}"
        if work.isolation:  # our solution has passed, so the reason is what this submission has returned or printed
            work.printed = "\n".join(filter(None, [work.printed, traceback.format_exc()]))
            message = f"the check cannot process what your code returned or printed: {type(error).__name__}: {error}"
    finally:
        work.close()
    if kind != "passed":
        message = "\n".join(filter(None, [starter_note(exercise, folder), message]))
    return kind, message


def load_check(exercise: Exercise):
    """The function `check` of its check.py."""
    name = f"check_{exercise.stage}_{exercise.name}"
    spec = importlib.util.spec_from_file_location(name, exercise.check_file)
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module.check


def describe_exception(error: LearnerError) -> str:
    """An exception as the learner sees it: its message, and the lines of the learner's code that raised it."""
    if str(error).startswith("the emulator found"):
        return str(error).strip()
    what = "your code calls exit(): remove the call" if error.kind == "SystemExit" else ""
    said = str(error).partition("\n\nInvoked with:")[0].strip()  # where pybind11 prints every tensor
    if "returned an invalid gradient at index" in said:
        said += " (the index counts the arguments of forward, from 0)"
    if "returned an incorrect number of gradients" in said and "Expected one gradient for each" not in said:
        said += ": return one for each argument of forward, and None for an argument without a gradient"
    lines = [what or f"{error.kind}: {said}"]
    lines += [f"  {file}:{number}: {text}" for file, number, text in error.where[-3:]]
    return "\n".join(lines)


def starter_note(exercise: Exercise, folder: Path) -> str:
    """Says where to begin if the folder is still the starter; otherwise empty."""
    if not variants.is_starter(exercise, folder):
        return ""
    return "\n".join(["This is still the starter. Begin here:", *variants.starting_points(exercise)])
