"""Where things are: the repository, and the folders that commands write to."""

from __future__ import annotations

import os
from pathlib import Path

from .emulator import Cache

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out"


def display_path(path: Path) -> str:
    """A path as a user would type it: from the root of the workbook if it lies there."""
    return os.path.relpath(path, ROOT) if path.is_relative_to(ROOT) else str(path)


def build_dir() -> Path:
    """BUILD_DIR=..., else build/ of the workbook, else, where that cannot be written, one in the user's cache."""
    if given := os.environ.get("BUILD_DIR"):
        return Path(given).expanduser().resolve()
    ours = ROOT / "build"
    if os.access(ours if ours.exists() else ROOT, os.W_OK):
        return ours
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lltm-workbook"


def build_cache() -> Cache:
    """Where builds are kept: `build_dir()`, and read-only build/ here, or SHARED_BUILD_DIRS (a list like PATH)."""
    given = os.environ.get("SHARED_BUILD_DIRS")
    return Cache(build_dir(), tuple(map(Path, given.split(":"))) if given else (ROOT / "build",))


def shown_path(path: Path) -> str:
    """A path as messages show it: from the root of the repository where it lies there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
