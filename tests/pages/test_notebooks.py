"""The notebooks: paired with their sources, free of outputs, and copied for readers."""

from __future__ import annotations

import json

import pytest

from common.pages import notebooks

pytestmark = pytest.mark.needs("jupytext", "nbformat")

SOURCES = [pytest.param(source, id=source.stem) for source in notebooks.notebook_sources()]


def test_there_are_notebooks():
    names = {source.stem for source in notebooks.notebook_sources()}
    assert names >= {"00a_autograd", "01_python", "02_aten", "compare"}


@pytest.mark.parametrize("source", SOURCES)
def test_the_pair_is_up_to_date_and_has_no_outputs(source):
    text = source.with_suffix(".ipynb").read_text()
    assert text == notebooks.render_ipynb(source), "run `make notebooks`"
    for cell in json.loads(text)["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder of notebooks and one of copies, both temporary."""
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(notebooks, "COPIES", tmp_path / "work")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "a.ipynb").write_text("first")
    return tmp_path


def test_copies_follow_their_sources(shelf):
    assert notebooks.copy_notebooks() == []
    (shelf / "notebooks" / "a.ipynb").write_text("second")
    assert notebooks.copy_notebooks() == []
    assert (shelf / "work" / "a.ipynb").read_text() == "second"


def test_a_reader_s_copy_is_never_touched(shelf):
    notebooks.copy_notebooks()
    (shelf / "work" / "a.ipynb").write_text("mine")
    (shelf / "notebooks" / "a.ipynb").write_text("second")
    assert notebooks.copy_notebooks() == ["a.ipynb"]
    assert (shelf / "work" / "a.ipynb").read_text() == "mine"


def test_a_file_that_was_there_before_is_kept(shelf):
    (shelf / "work").mkdir()
    (shelf / "work" / "a.ipynb").write_text("mine")
    assert notebooks.copy_notebooks() == ["a.ipynb"]
    assert (shelf / "work" / "a.ipynb").read_text() == "mine"


def test_check_names_what_is_stale(shelf, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "ROOT", shelf)
    (shelf / "notebooks" / "a.py").write_text("# %%\nprint(1)\n")
    assert notebooks.write_notebooks(check=True) == 1
    assert "notebooks/a.ipynb is not what notebooks/a.py makes: run `make notebooks`" in capsys.readouterr().out
    assert notebooks.write_notebooks() == 0
    assert notebooks.write_notebooks(check=True) == 0
