"""Packages that only a few tests need, installed into a folder of the build. Without a network, tests are skipped."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from pathlib import Path

import pytest

from common.errors import UserError
from common.paths import build_dir
from common.pip import run_pip


@functools.cache
def install(*packages: str) -> Path:
    """The folder with these packages, all that they need included. Skips the test if pip cannot get them."""
    folder = build_dir() / "pypi" / "-".join(packages)
    if not folder.exists():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--target"]
        try:
            run_pip([*pip, str(unfinished), *packages])
        except UserError as error:
            pytest.skip(f"needs {', '.join(packages)}, which pip cannot get: {error}")
        with contextlib.suppress(OSError):  # another process was faster
            unfinished.rename(folder)
    return folder
