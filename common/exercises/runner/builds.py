"""Builds of learners' folders, which the build folder caches up to a limited size."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ... import paths
from ...build.library import build_folder
from ...emulator import Cache, prune_cache, remove
from .target import build_folder_name

# How many bytes of each kind of build are kept under build/.
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
    """The place of a learner's builds in the build cache: one for each folder, so no build waits for another."""
    return "exercises/" + hashlib.sha256(str(folder).encode()).hexdigest()[:12]


def remove_builds(folder: Path) -> None:
    """Removes the builds of a learner's folder, but not the objects and headers, which other folders share."""
    remove(paths.build_dir() / cache_folder(folder))


def limit_builds() -> None:
    """Removes the least recently used builds of exercises until the sizes are within LIMITS."""
    prune_cache(Cache(paths.build_dir()), LIMITS)
