"""`make clean`."""

from __future__ import annotations

import shutil

from ..paths import ROOT, build_dir


def clean() -> int:
    """Removes build/ and out/, that is, everything that commands have created, but none of the learner's work."""
    for folder in (build_dir(), ROOT / "out"):
        shutil.rmtree(folder, ignore_errors=True)
    return 0
