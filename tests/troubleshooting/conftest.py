"""A sandbox for each test, and the command that builds the small module in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from troubleshooting.sandbox import LOAD, SOURCES, Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def loading(sandbox: Sandbox) -> str:
    """The command that builds and imports the small module with torch's `load`."""
    shutil.copy(SOURCES / "module.cpp", sandbox.folder)
    (sandbox.folder / "build").mkdir()
    return sandbox.script(LOAD)
