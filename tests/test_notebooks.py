"""The notebooks: paired with their sources, free of outputs, and each one runs from its first cell to its last."""

from __future__ import annotations

import json

import pytest

from common import notebooks
from common.stages import ROOT

pytestmark = pytest.mark.needs("jupytext", "nbformat")

NEEDS = {"00c_conv_batchnorm": ("sklearn",), "02c_other_code": ("zlib",)}  # beside what all of them need
SOURCES = [
    pytest.param(source, id=source.stem, marks=pytest.mark.needs(*NEEDS.get(source.stem, ())))
    for source in notebooks.sources()
]


def test_there_are_notebooks():
    assert {source.stem for source in notebooks.sources()} >= {"00a_autograd", "01_python", "02_aten", "compare"}


@pytest.mark.parametrize("source", SOURCES)
def test_the_pair_is_up_to_date_and_has_no_outputs(source):
    text = source.with_suffix(".ipynb").read_text()
    assert text == notebooks.ipynb(source), "run `make notebooks`"
    for cell in json.loads(text)["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.needs("nbclient", "ipykernel", "matplotlib", "g++")
@pytest.mark.parametrize("source", SOURCES)
def test_runs_from_first_cell_to_last(source, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    # A kernel of the Python that runs the tests, whatever else calls itself python3 on this machine.
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    folder = ROOT / "work" / "executed"
    folder.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.reads(notebooks.ipynb(source), as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    errors = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type == "error"
    ]
    assert not errors
    plots = sum(
        "image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert plots, "a notebook ends with plots"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder of notebooks and one of copies, both temporary."""
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path / "notebooks")
    monkeypatch.setattr(notebooks, "COPIES", tmp_path / "work")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "a.ipynb").write_text("first")
    return tmp_path


def test_copies_follow_their_sources(shelf):
    assert notebooks.copy() == []
    (shelf / "notebooks" / "a.ipynb").write_text("second")
    assert notebooks.copy() == []
    assert (shelf / "work" / "a.ipynb").read_text() == "second"


def test_a_reader_s_copy_is_never_touched(shelf):
    notebooks.copy()
    (shelf / "work" / "a.ipynb").write_text("mine")
    (shelf / "notebooks" / "a.ipynb").write_text("second")
    assert notebooks.copy() == ["a.ipynb"]
    assert (shelf / "work" / "a.ipynb").read_text() == "mine"


def test_a_file_that_was_there_before_is_kept(shelf):
    (shelf / "work").mkdir()
    (shelf / "work" / "a.ipynb").write_text("mine")
    assert notebooks.copy() == ["a.ipynb"]
    assert (shelf / "work" / "a.ipynb").read_text() == "mine"


def test_check_names_what_is_stale(shelf, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "ROOT", shelf)
    (shelf / "notebooks" / "a.py").write_text("# %%\nprint(1)\n")
    assert notebooks.pair(check=True) == 1
    assert "notebooks/a.ipynb is not what notebooks/a.py makes: run `make notebooks`" in capsys.readouterr().out
    assert notebooks.pair() == 0
    assert notebooks.pair(check=True) == 0
