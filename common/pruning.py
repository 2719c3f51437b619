"""Keeps build/ from growing without end: of what is kept by content, what was used least recently goes first."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

IN_USE = 3600  # seconds after its last use for which nothing is removed


def used(path: Path) -> Path:
    """Notes that a kept file or folder is in use; to be called before one looks whether it is there."""
    with contextlib.suppress(OSError):  # it is not there, or belongs to somebody else
        os.utime(path)
    return path


def prune(kept: Iterable[Path], most: int, in_use: float = IN_USE) -> None:
    """Removes files and folders, the least recently used first, until they take no more than `most` bytes.

    Those that were used within `in_use` seconds stay, however large they are.
    """
    found = []
    for path in kept:
        with contextlib.suppress(OSError):  # another has just removed it
            found.append((path.stat().st_mtime, size(path), path))
    total = sum(each for _, each, _ in found)
    for _, bytes_, path in sorted(found):
        if total <= most:
            return
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < in_use:
                return
            removed = path.with_name(f".{path.name}.removed")  # at once, so that nobody finds a part of it
            path.rename(removed)
            total -= bytes_
            remove(removed)


def remove(path: Path) -> None:
    """Removes a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def size(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files)
