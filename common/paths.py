"""The paths of the repository and of the folders that commands write to."""

from __future__ import annotations

import os
from pathlib import Path

from .emulator import Cache

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out"


def display_path(path: Path) -> str:
    """A path as a user would type it: relative to the root of the workbook if it lies there."""
    return os.path.relpath(path, ROOT) if path.is_relative_to(ROOT) else str(path)


def build_dir() -> Path:
    """BUILD_DIR if given, else build/ of the workbook, or a folder in the user's cache if that is not writable."""
    if given := os.environ.get("BUILD_DIR"):
        return Path(given).expanduser().resolve()
    ours = ROOT / "build"
    if os.access(ours if ours.exists() else ROOT, os.W_OK):
        return ours
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lltm-workbook"


def build_cache() -> Cache:
    """The build cache: `build_dir()`, and for reading only build/ here or SHARED_BUILD_DIRS (a list like PATH)."""
    given = os.environ.get("SHARED_BUILD_DIRS")
    return Cache(build_dir(), tuple(map(Path, given.split(":"))) if given else (ROOT / "build",))
