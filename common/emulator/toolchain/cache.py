"""A cache of build results, keyed by content: one writable folder, and others that are only read.

The least recently used entries are removed first, so that the cache does not grow without limit.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

IN_USE = 3600  # seconds after its last use during which an entry is never removed
# Bytes that each kind of entry may take in a user's cache.
LIMITS = {"extensions/*/*": 10**9, "headers/*": 3 * 10**9, "objects/*": 2 * 10**9}


@dataclass(frozen=True)
class Cache:
    """`folder` is written to; `shared` folders, laid out in the same way, are only read.

    A shared folder that is built once can serve a whole class: students find the builds of everything that they did
    not change, and cannot change the entries for others.
    """

    folder: Path
    shared: tuple[Path, ...] = ()

    def find(self, *names: str) -> Path:
        """The path of an entry in `folder`, or in one of `shared` if it exists only there; marks it as used."""
        path = self.folder.joinpath(*names)
        if not path.exists():
            others = (folder.joinpath(*names) for folder in self.shared)
            path = next(filter(can_be_found, others), path)
        with contextlib.suppress(OSError):  # it does not exist, or belongs to another user
            os.utime(path)
        return path


def can_be_found(path: Path) -> bool:
    """Whether a path exists, as far as this user can see: a shared folder may not be readable."""
    try:
        return path.exists()
    except PermissionError:
        return False


def default_cache() -> Cache:
    """The cache of this user: EMULATOR_CACHE, or a folder in XDG_CACHE_HOME or ~/.cache."""
    if given := os.environ.get("EMULATOR_CACHE"):
        return Cache(Path(given).expanduser().resolve())
    return Cache(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cuemu")


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[int]:
    """Creates and locks a folder; a second process waits. Yields the lock's file descriptor.

    The system releases the lock when the last process with the descriptor ends. So a compiler that inherits it keeps
    the lock if the process that started it is killed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def build_once(final: Path, build: Callable[[Path, int], None]) -> bool:
    """Builds a folder of the cache unless it exists. Returns whether it was built now.

    `build(work, lock)` fills a folder beside it, which then gets the final name. So a build that is killed leaves
    nothing that looks like a result. `work/temp` is removed. One process builds at a time; the others wait.
    """
    if final.exists():
        return False
    with lock_folder(final.parent) as lock:
        for left_behind in final.parent.glob("*.unfinished"):  # by a build that was killed
            shutil.rmtree(left_behind)
        if final.exists():
            return False
        work = final.with_suffix(".unfinished")
        work.mkdir()
        try:
            build(work, lock)
        except BaseException:
            shutil.rmtree(work)
            raise
        shutil.rmtree(work / "temp", ignore_errors=True)
        work.rename(final)
    return True


def prune_cache(cache: Cache, limits: Mapping[str, int] = LIMITS) -> None:
    """Keeps the folder of a cache within limits: a number of bytes for each pattern of entries."""
    for pattern, most in limits.items():
        # Not Path.glob: up to Python 3.12 it raises for a folder that another process has just removed.
        found = map(Path, glob.iglob(f"{glob.escape(str(cache.folder))}/{pattern}"))  # noqa: PTH207
        prune((path for path in found if is_entry(path)), most)


def is_entry(path: Path) -> bool:
    """Whether this is a result, and not the lock or the log beside it."""
    return path.suffix == ".o" or (path.is_dir() and path.suffix == "" and not path.name.startswith("."))


def prune(entries: Iterable[Path], most: int, in_use: float = IN_USE) -> None:
    """Removes files and folders, the least recently used first, until they take no more than `most` bytes.

    Entries used within the last `in_use` seconds stay, however large they are.
    """
    found = []
    for path in entries:
        with contextlib.suppress(OSError):  # another process has just removed it
            found.append((path.stat().st_mtime, size_of(path), path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            return
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < in_use:
                return
            removed = path.with_name(
                f".{path.name}.removed"
            )  # renamed first, so that no other process finds half of it
            path.rename(removed)
            total -= size
            remove(removed)


def remove(path: Path) -> None:
    """Removes a file or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files)
