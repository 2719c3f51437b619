"""A sandbox for each test, and the command that builds the small module in it."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

import pytest

from common.paths import ROOT
from support.sandbox import LOAD, SOURCES, Sandbox, sections


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test of a section is a proof of what that section says."""
    here, sources = Path(__file__).parent, f"{SOURCES.relative_to(ROOT)}/*"
    for item in items:
        if item.path.parent == here and "sandbox" in item.fixturenames:
            code = inspect.getsource(item.function)
            text = "".join(text for title, text in sections().items() if f'"{title}"' in code)
            item.add_marker(pytest.mark.proof("troubleshooting sections", files=[sources], text=text))


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def loading(sandbox: Sandbox) -> str:
    """The command that builds and imports the small module with torch's `load`."""
    shutil.copy(SOURCES / "module.cpp", sandbox.folder)
    (sandbox.folder / "build").mkdir()
    return sandbox.script(LOAD)
