"""The reader's copies of the notebooks."""

from __future__ import annotations

import json

import pytest

from common.lab import copies
from common.pages.notebooks import NOTEBOOKS
from common.paths import ROOT


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder of notebooks, and beside it WORK, where the copies are."""
    monkeypatch.setattr(copies, "NOTEBOOKS", tmp_path / "sources")
    monkeypatch.setenv("WORK", str(tmp_path))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.ipynb").write_text("first")
    return tmp_path


def test_copies_follow_their_sources(shelf):
    assert copies.copy_notebooks() == []
    (shelf / "sources" / "a.ipynb").write_text("second")
    assert copies.copy_notebooks() == []
    assert (shelf / "notebooks" / "a.ipynb").read_text() == "second"


def test_a_reader_s_copy_is_never_touched(shelf):
    copies.copy_notebooks()
    (shelf / "notebooks" / "a.ipynb").write_text("mine")
    (shelf / "sources" / "a.ipynb").write_text("second")
    assert copies.copy_notebooks() == ["a.ipynb"]
    assert (shelf / "notebooks" / "a.ipynb").read_text() == "mine"


def test_a_file_that_was_there_before_is_kept(shelf):
    (shelf / "notebooks").mkdir()
    (shelf / "notebooks" / "a.ipynb").write_text("mine")
    assert copies.copy_notebooks() == ["a.ipynb"]
    assert (shelf / "notebooks" / "a.ipynb").read_text() == "mine"


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda notebook: notebook.stem)
def test_a_copy_outside_of_the_workbook_finds_it(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy = json.loads(copies.at_home_in(tmp_path, notebook.read_text()))
    assert copies.at_home_in(ROOT / "work", notebook.read_text()) == notebook.read_text()
    cells = ("".join(cell["source"]) for cell in copy["cells"] if cell["cell_type"] == "code")
    search = next(cell for cell in cells if "sys.path.insert" in cell)
    found: dict = {}
    exec("\n".join(line for line in search.partition("sys.path")[0].splitlines() if line[:1] != "%"), found)
    assert found["root"] == ROOT
