"""Where builds are kept: in one's own folder, and, only read, in that of a workbook which belongs to somebody else.

So one checkout, built once, serves a whole class: everybody finds there what they did not change, and nobody can
change what others will find.
"""

from __future__ import annotations

import os
from pathlib import Path

from .stages import ROOT

# More of them in SHARED_BUILD_DIRS, as in PATH.
SHARED = [Path(each) for each in [*filter(None, os.environ.get("SHARED_BUILD_DIRS", "").split(":")), ROOT / "build"]]


def own() -> Path:
    """BUILD_DIR=..., else build/ of the workbook, else, where that cannot be written, one in the user's cache."""
    if given := os.environ.get("BUILD_DIR"):
        return Path(given).expanduser().resolve()
    ours = ROOT / "build"
    if os.access(ours if ours.exists() else ROOT, os.W_OK):
        return ours
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lltm-workbook"


BUILD = own()


def kept(path: Path) -> Path:
    """A path in BUILD; the same in one of SHARED where it is only there."""
    if path.exists() or not path.is_relative_to(BUILD):
        return path
    shared = (folder / path.relative_to(BUILD) for folder in SHARED)
    return next((found for found in shared if found.exists()), path)
