"""The learner's own: `work/N/NAME/` for each exercise, and what was done so far. Nothing here is ever overwritten.

WORK=dir names another folder than work/. What is known of an exercise is a small file of its own, replaced whole: an
interrupted run, or two terminals at once, leave the old one or the new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from ..errors import UserError
from ..stages import ROOT
from . import variants
from .exercise import Exercise

KEPT = "before"  # where `reset` puts old work


@dataclass(frozen=True)
class State:
    """What is known of one exercise: hints shown, when it passed first, and the starter as it was handed out."""

    hints: int = 0
    passed: str = ""  # date and time
    tries: int = 0
    starter: dict[str, str] = field(default_factory=dict)  # a hash of each file's text


def root() -> Path:
    """The learner's folder."""
    given = os.environ.get("WORK")
    return Path(given).expanduser().resolve() if given else ROOT / "work"


def folder_of(exercise: Exercise) -> Path:
    """Where the learner's files are, or will be."""
    return root() / str(exercise.stage) / exercise.name


def begin(exercise: Exercise) -> Path:
    """The learner's folder, made from the starter if it is not there yet: whole, or not at all."""
    folder = folder_of(exercise)
    if folder.exists():
        return folder
    files = variants.starter(exercise)
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        write(files, unfinished)
        with locked():
            if folder.exists():  # another terminal was faster
                shutil.rmtree(unfinished)
            else:
                unfinished.rename(folder)
                update(exercise, starter={name: digest(text) for name, text in files.items()})
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}. WORK=dir names another folder") from None
    return folder


def write(files: variants.Files, folder: Path) -> None:
    """Writes a variant into a new folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def reset(exercise: Exercise) -> Path | None:
    """Puts the learner's folder aside and makes a fresh one; where the old one is now, None if there was none."""
    folder, kept = folder_of(exercise), None
    with locked():
        if folder.exists():
            stamp = time.strftime("%Y%m%d-%H%M%S")
            kept = root() / KEPT / f"{exercise.stage}-{exercise.name}-{stamp}"
            number = 1
            while kept.exists():
                number += 1
                kept = kept.with_name(f"{exercise.stage}-{exercise.name}-{stamp}-{number}")
            kept.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(kept)
    update(exercise, hints=0)
    begin(exercise)
    return kept


def state(exercise: Exercise) -> State:
    """What is known of an exercise; nothing, if its file cannot be read (it is kept beside)."""
    path = _state_path(exercise)
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return State(**{one.name: known[one.name] for one in fields(State) if one.name in known})
    except FileNotFoundError:
        return State()
    except (OSError, ValueError, TypeError):
        path.replace(path.with_suffix(".broken"))
        return State()


def update(exercise: Exercise, **changes: object) -> State:
    """Writes down what changed."""
    path = _state_path(exercise)
    new = replace(state(exercise), **changes)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(f".{os.getpid()}")
    made.write_text(json.dumps(asdict(new), indent=1), encoding="utf-8")
    made.replace(path)
    return new


def record(exercise: Exercise, passed: bool) -> State:
    """Writes down that it was checked."""
    before = state(exercise)
    now = before.passed or (time.strftime("%Y-%m-%d %H:%M") if passed else "")
    return update(exercise, tries=before.tries + 1, passed=now)


@contextmanager
def locked() -> Iterator[None]:
    """One command at a time changes the learner's folder."""
    root().mkdir(parents=True, exist_ok=True)
    with (root() / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _state_path(exercise: Exercise) -> Path:
    return root() / ".progress" / f"{exercise.stage}.{exercise.name}.json"
