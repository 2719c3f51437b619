"""Each notebook runs from its first cell to its last."""

from __future__ import annotations

import pytest

from common.pages import notebooks
from common.paths import ROOT
from support.proofs.files import notebook_files, stage_files

NEEDS = {
    "00f_conv_batchnorm": ("sklearn",),
    "02e_other_code": ("zlib",),
    "08_deploy": ("sklearn",),
    "09_distributed": ("sklearn",),
}  # beside what all of them need
# What any of them may load or show, and the commands that some of them start.
READ = [*stage_files(), "stages/*/exercises/*/exercise.ini", "docs/results/*.json"]
STARTED = {"03c_threads_together": ["common.commands.emulate"]}
SOURCES = [
    pytest.param(
        source,
        id=source.stem,
        marks=[
            pytest.mark.needs(*NEEDS.get(source.stem, ())),
            pytest.mark.proof(
                part=source.stem, files=[*notebook_files(source.stem), *READ], uses=STARTED.get(source.stem, ())
            ),
        ],
    )
    for source in notebooks.notebook_sources()
]


@pytest.mark.proof("notebooks")
@pytest.mark.needs("jupytext", "nbformat", "nbclient", "ipykernel", "matplotlib", "g++")
@pytest.mark.parametrize("source", SOURCES)
def test_runs_from_first_cell_to_last(source, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    # A kernel of the Python that runs the tests, whatever else calls itself python3 on this machine.
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    folder = ROOT / "work" / "executed"
    folder.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.reads(notebooks.render_ipynb(source), as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    errors = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type == "error"
    ]
    assert not errors
    plots = sum(
        "image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert plots, "a notebook ends with plots"
