"""Where the notebooks' builds are kept, and the locks that torch leaves there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..paths import build_dir


def notebook_builds() -> Path:
    """The folder for what notebooks build with this version of torch."""
    import torch

    folder = build_dir() / "notebooks" / f"torch-{torch.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_locks() -> None:
    """Removes the locks of torch's builds that were killed; torch before 2.14 would wait for them forever.

    torch locks a build by a file that exists, and keeps it open. So a lock that no process has open was left behind.
    """
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14):
        return
    held = open_files()
    for lock in notebook_builds().glob("*/lock"):
        if lock.resolve() not in held:
            lock.unlink(missing_ok=True)


def open_files() -> set[Path]:
    """The files that this user's processes have open."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # of another user, or the process has ended
            found.add(link.readlink())
    return found
