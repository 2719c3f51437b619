"""`make watch`: a check whenever a file was saved."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from ..console import say
from . import place
from .commands import begun, check_one, current, first_open, next_one
from .exercise import shown

POLL = 0.5  # seconds between two looks at the files
WATCHED = ("*", "csrc/*")  # what a build or a program leaves goes deeper
WATCHED_KINDS = (".py", ".cpp", ".cu", ".h", ".cuh", ".ini", ".toml")


def watch(name: str | None) -> int:
    """Checks whenever a file was saved; without a name it goes on to the next exercise until all are solved."""
    exercise = current(name)
    say(f"Watching {shown(begun(exercise))}/: every time you save, it is checked. Ctrl-C ends this.")
    seen, pressed = None, ctrl_c()
    while True:
        if pressed:
            raise KeyboardInterrupt
        now = stamps(place.folder_of(exercise))
        if now == seen:
            time.sleep(POLL)
            continue
        seen = now
        say(f"\n--- {time.strftime('%H:%M:%S')}")
        if not check_one(exercise) or name is not None:
            continue
        say()
        exercise = first_open()
        if exercise is None:
            return next_one()
        seen = stamps(begun(exercise))
        next_one()


def ctrl_c() -> list[int]:
    """Fills with each Ctrl-C from now on. It raises as always, but not while torch is imported, which would abort."""
    pressed: list[int] = []
    usual = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        spec = getattr(sys.modules.get("torch"), "__spec__", None)
        if not getattr(spec, "_initializing", False):
            usual(number, frame)

    if callable(usual):
        signal.signal(signal.SIGINT, note)
    return pressed


def stamps(folder: Path) -> dict[Path, int]:
    """When each of the learner's files was written."""
    found = {}
    for path in (path for pattern in WATCHED for path in folder.glob(pattern)):
        with contextlib.suppress(OSError):  # an editor has just replaced it
            if path.suffix in WATCHED_KINDS and not path.name.startswith("."):
                found[path] = path.stat().st_mtime_ns
    return found
