"""Packages that only a few tests need, installed into a folder of the build. Without a network, tests are skipped."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.paths import build_dir


@functools.cache
def install(*packages: str) -> Path:
    """The folder with these packages, all that they need included. Skips the test if pip cannot get them."""
    folder = build_dir() / "pypi" / "-".join(packages)
    if not folder.exists():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target"]
        done = subprocess.run([*pip, str(unfinished), *packages], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"needs {', '.join(packages)}, which pip cannot get: {done.stderr.strip().splitlines()[-1]}")
        with contextlib.suppress(OSError):  # another process was faster
            unfinished.rename(folder)
    return folder
