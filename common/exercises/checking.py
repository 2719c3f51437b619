"""Checks a folder against an exercise: `check(find("3/guard"), folder)` gives a `Verdict`, whatever is in it."""

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
from .confined import Confined
from .exercise import Exercise
from .process import LearnerError, Stopped
from .target import targets_of

if TYPE_CHECKING:
    from .judge import Work

KINDS = ("passed", "wrong", "build", "error", "crash", "time", "checker")


@dataclass(frozen=True)
class Verdict:
    """What became of a check. `message` is all that a learner sees; `kind` is one of `KINDS`.

    "passed": `message` is what the check returned, such as what it counted, mostly nothing.

    "wrong": not what was asked for; "build": does not compile; "error": raised an exception; "crash", "time": the
    process ended or gave no answer; "checker": our fault, not the learner's.
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
        """Where it ran, as a learner is told behind the seconds; nothing of what runs anywhere."""
        return {"cuda": ", on the emulator and the GPU", "emulator": ", on the emulator"}.get(self.target, "")


def check(
    exercise: Exercise,
    folder: Path,
    timeout: float | None = None,
    target: str | None = None,
    seed: int | None = None,
    confined: Confined | None = None,
    ahead: bool = True,
) -> Verdict:
    """Runs the check of an exercise on a learner's folder.

    `timeout` is in seconds, for the learner's code alone. `target` is one of the stage's; without it each that
    `targets_of` names, until one does not pass.
    `seed` gives the numbers of an earlier check again. `confined` are sandboxes for a stranger's work.
    `ahead`: the learner's process starts while the compiler runs, which is quicker; without it only when there is
    something to run in it, which takes less of the processor.
    Raises `UserError` only when this machine cannot check the exercise at all.
    """
    from .judge import Work  # imports torch

    begun = time.perf_counter()
    targets = [target] if target else targets_of(exercise)
    for one in targets:
        work = Work(exercise, Path(folder).resolve(), one, timeout, seed, confined)
        work.ahead = ahead
        kind, message = judged(work)
        if kind != "passed":
            break
    if one != targets[0] and kind != "passed":
        message = f"The emulator finds nothing wrong; on the GPU:\n{message}"
    seconds = time.perf_counter() - begun
    return Verdict(exercise.id, kind == "passed", kind, message, seconds, work.target, work.printed)


def judged(work: Work) -> tuple[str, str]:
    """The kind and the message of a `Verdict`, for what the work is built for. Closes it."""
    from .judge import BuildFailure, Failure

    exercise, folder = work.exercise, work.folder
    kind, message = "passed", ""
    try:
        if work.ahead and (exercise.kind == "write" or any(path.name != "setup.py" for path in folder.glob("*.py"))):
            work.start()  # imports torch while we do, and while the compiler runs
        rule = rule_of(exercise)
        missing = [name for name in variants.starter(exercise) if not (folder / name).is_file()]
        if missing:
            raise Failure(f"{missing[0]} is missing. `make reset` gives you a fresh folder and keeps yours")
        message = rule(work) or ""
    except BuildFailure as error:
        kind, message = "build", str(error)
    except AssertionError as error:
        kind, message = "wrong", str(error)
    except LearnerError as error:
        kind, message = "error", raised(error)
    except Stopped as error:
        kind, message = error.kind, str(error)
    except UserError:
        raise
    except Exception:
        kind, message = "checker", f"the check itself failed; this is not your mistake.\n{traceback.format_exc()}"
    finally:
        work.close()
    if kind != "passed":
        message = "\n".join(filter(None, [untouched(exercise, folder), message]))
    return kind, message


def rule_of(exercise: Exercise):
    """The function `check` of its check.py."""
    name = f"check_{exercise.stage}_{exercise.name}"
    spec = importlib.util.spec_from_file_location(name, exercise.rule)
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module.check


def raised(error: LearnerError) -> str:
    """An exception as a learner sees it: what, and in which of their lines."""
    if str(error).startswith("the emulator found"):
        return str(error).strip()
    what = "your code calls exit(), which has no place in it" if error.kind == "SystemExit" else ""
    said = str(error).partition("\n\nInvoked with:")[0].strip()  # where pybind11 prints every tensor
    if "returned an invalid gradient at index" in said:
        said += " (indices count the arguments of forward, from 0)"
    if "returned an incorrect number of gradients" in said and "Expected one gradient for each" not in said:
        said += ": one for each argument of forward, None for what has none"
    lines = [what or f"{error.kind}: {said}"]
    lines += [f"  {file}:{number}: {text}" for file, number, text in error.where[-3:]]
    return "\n".join(lines)


def untouched(exercise: Exercise, folder: Path) -> str:
    """Where to begin, for a folder that is still the starter; else nothing."""
    if not variants.is_starter(exercise, folder):
        return ""
    starter = variants.starter(exercise)
    places = [f"  {file}:{line}: {text}" for file, line, text in variants.todos(starter)]
    return "\n".join(["This is still the starter. Begin here:", *places]) if places else "This is still the starter."
