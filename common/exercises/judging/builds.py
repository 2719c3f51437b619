"""Builds of learners' folders: made, kept in the build folder for a while, and limited in size."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ... import paths
from ...build.library import build_folder
from ...emulator import Cache, prune_cache, remove
from .target import build_folder_name

# Bytes under build/ that may be kept, by what they are.
LIMITS = {
    "exercises/*/*/*": 10**9,
    "headers/*": 3 * 10**9,
    "objects/*": 2 * 10**9,
    "given/exercises/*/*": 10**9,  # grading/isolation.py
    "given/objects/*": 10**9,
}


def build_work_extension(folder: Path, target: str) -> Path:
    """The extension of a learner's folder, built if needed. Raises `UserError` with the compiler's messages."""
    built = build_folder(
        folder, target, f"{cache_folder(folder)}/{build_folder_name(target)}", "your code", quick=True
    )
    if not built.cached:
        limit_builds()
    return built.path


def cache_folder(folder: Path) -> str:
    """Where a learner's builds are in the build cache: one place for each folder, so no build waits for another."""
    return "exercises/" + hashlib.sha256(str(folder).encode()).hexdigest()[:12]


def remove_builds(folder: Path) -> None:
    """Removes the builds of a learner's folder; objects and headers, which others share, stay."""
    remove(paths.build_dir() / cache_folder(folder))


def limit_builds() -> None:
    """Removes what was used least recently of the builds of exercises, down to LIMITS."""
    prune_cache(Cache(paths.build_dir()), LIMITS)
