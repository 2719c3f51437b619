"""The learner's workspace: `work/N/NAME/` for each exercise, and what was solved. No work is ever overwritten.

WORK=dir sets a folder other than work/. An update of the workbook changes only files that the learner has not
changed. The state of each exercise is in a small file of its own, which is replaced as a whole: after an interrupted
run, or with two terminals at once, the file is either the old one or the new one.
"""

from __future__ import annotations

import contextlib
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
from ..paths import ROOT, display_path
from . import variants
from .exercise import Exercise

BACKUPS = "before"  # where `reset` puts old work


@dataclass(frozen=True)
class State:
    """The state of one exercise: hints shown, when it first passed, and the starter as it was handed out."""

    hints: int = 0
    passed: str = ""  # date and time
    tries: int = 0
    starter: dict[str, str] = field(default_factory=dict)  # a hash of each file as it was handed out
    newer: dict[str, str] = field(
        default_factory=dict
    )  # a hash of each newer file, where the learner's file was kept


@dataclass(frozen=True)
class Update:
    """The effect of an update of the workbook: files that were updated, and files that the learner had changed."""

    updated: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def root() -> Path:
    """The learner's folder."""
    given = os.environ.get("WORK")
    return Path(given).expanduser().resolve() if given else ROOT / "work"


def folder_of(exercise: Exercise) -> Path:
    """Where the learner's files are, or will be."""
    return root() / str(exercise.stage) / exercise.name


def begin(exercise: Exercise) -> Path:
    """The learner's folder. If it does not exist, it is created from the starter, either completely or not at all."""
    folder = folder_of(exercise)
    if folder.exists():
        return folder
    files = variants.starter(exercise)
    with locked():
        for left_behind in folder.parent.glob(f".{folder.name}.unfinished"):  # by a run that was interrupted
            shutil.rmtree(left_behind)
        if not folder.exists():  # another terminal may have been faster
            unfinished = folder.with_name(f".{folder.name}.unfinished")
            write_files(files, unfinished)
            _write_state(exercise, starter={name: digest(text) for name, text in files.items()}, newer={})
            unfinished.rename(folder)
    return folder


def update_folder(exercise: Exercise) -> Update:
    """After an update of the workbook: updates the files that the learner has not changed, and adds new ones.

    A file is unchanged if it equals the one that was handed out. Each changed file is reported once.
    """
    folder, known = folder_of(exercise), read_state(exercise)
    files = variants.starter(exercise)
    changed = {name: text for name, text in files.items() if known.starter.get(name) != digest(text)}
    if not folder.exists() or not known.starter or not changed:
        return Update()
    updated, conflicts = [], []
    with locked():
        starter, newer = dict(known.starter), dict(known.newer)
        for name, text in changed.items():
            path = folder / name
            now = path.read_bytes() if path.is_file() else None
            if now == text.encode():
                starter[name] = digest(text)
            elif (now is None and name not in starter and not path.exists()) or (
                now is not None and digest(now) == starter.get(name)
            ):
                _replace(path, text)
                starter[name] = digest(text)
                updated.append(name)
            elif newer.get(name) != digest(text):
                newer[name] = digest(text)
                conflicts.append(name)
        _write_state(exercise, starter=starter, newer=newer)
    return Update(tuple(updated), tuple(conflicts))


def write_files(files: variants.Files, folder: Path) -> None:
    """Writes a variant into a new folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def reset(exercise: Exercise, files: variants.Files | None = None) -> Path | None:
    """Moves the learner's folder to a backup and makes a fresh one from the starter, with `files` replacing its own.

    Returns the path of the backup; None if there was no folder.
    """
    folder, backup = folder_of(exercise), None
    with locked():
        if folder.exists():
            now = time.strftime("%Y%m%d-%H%M%S")
            backup = root() / BACKUPS / f"{exercise.stage}-{exercise.name}-{now}"
            number = 1
            while backup.exists():
                number += 1
                backup = backup.with_name(f"{exercise.stage}-{exercise.name}-{now}-{number}")
            backup.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(backup)
        _write_state(exercise, hints=0)
    folder = begin(exercise)
    for name, text in (files or {}).items():
        _replace(folder / name, text)
    return backup


def read_state(exercise: Exercise) -> State:
    """The state of an exercise; the empty state if its file cannot be read (that file is renamed and kept)."""
    path = _state_path(exercise)
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        found = State(**{name: value for name, value in dict(known).items() if name in State.__dataclass_fields__})
        if not known or any(
            type(getattr(found, one.name)) is not type(getattr(State(), one.name)) for one in fields(State)
        ):
            raise ValueError("a value of another type")
    except FileNotFoundError:
        return State()
    except (OSError, ValueError, TypeError):
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".broken"))
        return State()
    return found


def update_state(exercise: Exercise, **changes: object) -> State:
    """Records these changes."""
    with locked():
        return _write_state(exercise, **changes)


def record_check(exercise: Exercise, passed: bool) -> State:
    """Records that the exercise was checked."""
    with locked():
        before = read_state(exercise)
        now = before.passed or (time.strftime("%Y-%m-%d %H:%M:%S") if passed else "")
        return _write_state(exercise, tries=before.tries + 1, passed=now)


def remember(exercise: Exercise) -> None:
    """Makes an exercise the current one, which commands use when they name none."""
    with locked():
        _replace(_current_path(), exercise.id)


def forget() -> None:
    """Forgets the current exercise: commands that name none use the next one in order again."""
    with locked():
        _current_path().unlink(missing_ok=True)


def read_remembered() -> str:
    """The exercise that was named last, such as `3/guard`; empty when there is none."""
    try:
        return _current_path().read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@contextmanager
def locked() -> Iterator[None]:
    """Lets only one command at a time change the learner's folder. A command must not nest two of these locks.

    Raises `UserError` if the folder is not writable.
    """
    try:
        root().mkdir(parents=True, exist_ok=True)
        with (root() / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UserError(
            f"cannot write in {display_path(root())}/: {error.strerror or error}. WORK=dir sets another folder"
        ) from None


def digest(text: str | bytes) -> str:
    """A short hash of a text."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def _write_state(exercise: Exercise, **changes: object) -> State:
    """Replaces the file as a whole, so that an interrupted run leaves the old or the new one. Requires `locked`."""
    path, new = _state_path(exercise), replace(read_state(exercise), **changes)
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, json.dumps(asdict(new), indent=1))
    return new


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.new")
    made.write_text(text, encoding="utf-8")
    made.replace(path)


def _current_path() -> Path:
    return root() / ".progress" / "current"


def _state_path(exercise: Exercise) -> Path:
    return root() / ".progress" / f"{exercise.stage}.{exercise.name}.json"
