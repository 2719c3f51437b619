"""The notebooks: paired with their sources, and free of outputs."""

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
    cells = json.loads(text)["cells"]
    assert cells[0]["cell_type"] == "markdown", "a notebook begins with its title"
    for cell in cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_check_names_what_is_stale(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "a.ipynb").write_text("first")
    (tmp_path / "notebooks" / "a.py").write_text("# %%\nprint(1)\n")
    assert notebooks.write_notebooks(check=True) == 1
    assert "notebooks/a.ipynb is not what notebooks/a.py makes: run `make notebooks`" in capsys.readouterr().out
    assert notebooks.write_notebooks() == 0
    assert notebooks.write_notebooks(check=True) == 0
