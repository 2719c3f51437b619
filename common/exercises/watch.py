"""`make watch`: checks an exercise whenever one of its files is saved."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from ..console import say
from ..paths import display_path
from . import workspace
from .commands import check_and_report, find_exercise, first_unsolved, prepare_folder, show_next

POLL_SECONDS = 0.5  # seconds between two looks at the files
WATCHED = ("*", "csrc/*")  # files that builds and programs create are in deeper folders
WATCHED_KINDS = (".py", ".cpp", ".cu", ".h", ".cuh", ".ini", ".toml")


def watch(name: str | None) -> int:
    """Checks whenever a file is saved; without a name, continues with the next exercise until all are solved."""
    exercise = find_exercise(name)
    say(f"Watching {display_path(prepare_folder(exercise))}/: each save starts a check. Press Ctrl-C to stop.")
    seen, pressed = None, record_interrupts()
    while True:
        if pressed:
            raise KeyboardInterrupt
        times = modification_times(workspace.folder_of(exercise))
        if times == seen:
            time.sleep(POLL_SECONDS)
            continue
        seen = times
        say(f"\n--- {time.strftime('%H:%M:%S')}")
        if not check_and_report(exercise) or name is not None:
            continue
        say()
        workspace.forget()
        exercise = first_unsolved()
        if exercise is None:
            return show_next()
        seen = modification_times(prepare_folder(exercise))
        show_next()


def record_interrupts() -> list[int]:
    """A list to which each Ctrl-C is added. It raises as usual, except while torch is imported: that would abort."""
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


def modification_times(folder: Path) -> dict[Path, int]:
    """When each of the learner's files was last modified."""
    found = {}
    for path in (path for pattern in WATCHED for path in folder.glob(pattern)):
        with contextlib.suppress(OSError):  # an editor has just replaced it
            if path.suffix in WATCHED_KINDS and not path.name.startswith("."):
                found[path] = path.stat().st_mtime_ns
    return found
