"""What notebook 08 says of exported programs, libraries, bad requests and times, and what it skips without CMake."""

from __future__ import annotations

import subprocess
import warnings

import pytest
import torch
from torch.export import Dim

from common import deploy
from common.check.deploy import assert_close
from common.pages import notebooks
from common.paths import ROOT
from common.studies import serving
from support.labs import definitions
from support.proofs.files import notebook_files, stage_files
from support.serving import DEPLOY_MARKS

pytestmark = [
    *DEPLOY_MARKS[:1],
    pytest.mark.needs("sklearn"),
    pytest.mark.proof(
        "claims of notebooks",
        files=[
            *notebook_files("08_deploy"),
            *stage_files(7, 8),
            "stages/stage8_deploy/CMakeLists.txt",
            "docs/results/studies/serving.json",
        ],
    ),
]


def exported(B: int, h: torch.Tensor, cell: torch.Tensor, dynamic_shapes: tuple | None) -> str:
    """What the notebook says about an export with B sequences of 3 steps and these states."""
    example = torch.zeros(B, 3, 8), torch.full((B,), 3), h, cell
    return definitions("08_deploy").export_and_compare(deploy.build_package().model, example, dynamic_shapes)


@pytest.mark.syllabus("8.1b")
def test_examples_that_torch_export_takes_literally():
    shapes, two, one = deploy.stage_module("export").dynamic_shapes(), torch.zeros(2, 64), torch.zeros(1, 64)
    assert exported(2, two, two.clone(), shapes) == "the results agree"
    assert "Guard failed: steps.size()[0] == 2" in exported(2, two, two.clone(), None)
    assert exported(1, one, one.clone(), shapes).startswith("no program: You marked batch as dynamic")
    assert exported(2, two, two, shapes).startswith("the results differ by up to")
    automatic = ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}, {0: Dim.AUTO}, {0: Dim.AUTO})
    assert "Guard failed: steps.size()[0] == 1" in exported(1, one, one.clone(), automatic)


@pytest.mark.syllabus("8.1b")
def test_the_exported_program_calls_the_operator_by_its_name():
    model, export = deploy.build_package().model, deploy.stage_module("export")
    program = torch.export.export(model, export.example_inputs(model), dynamic_shapes=export.dynamic_shapes())
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert sum("lltm_sequence" in target for target in targets) == 1


def test_the_package_does_not_check_sizes():
    deployed, export = deploy.build_package(), deploy.stage_module("export")
    shapes = export.dynamic_shapes()
    program = torch.export.export(deployed.model, export.example_inputs(deployed.model), dynamic_shapes=shapes)
    package = torch._inductor.aoti_load_package(str(deployed.path))
    call = definitions("08_deploy").call_with_features
    assert "Guard failed: steps.size()[2] == 8" in call(program.module(), 9)
    assert call(program.module(), 8).startswith("scores")
    assert call(package, 9).startswith("scores")


@pytest.mark.syllabus("8.1a")
def test_the_libraries_of_the_program():
    listed = subprocess.run(["ldd", deploy.build_program()], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    assert {"libtorch.so", "libtorch_cpu.so", "libc10.so"} <= set(names)
    assert not [name for name in names if "python" in name]
    assert any("torch_cuda" in name for name in names) == torch.backends.cuda.is_built()


@pytest.mark.syllabus("8.1c")
def test_every_bad_request_is_refused_and_the_next_one_is_right():
    [sequence] = torch.rand(1, 8, 8)
    with deploy.Server(deploy.build_program(), deploy.build_package().path) as server:
        for name, body in definitions("08_deploy").bad_requests().items():
            status, answer = server.post(body)
            assert 400 <= status < 500, name
            assert answer["error"], name
            status, answer = server.post({"steps": sequence.tolist()})
            assert status == 200, name
            assert_close(f"after {name}", answer["scores"], sequence)


def test_what_the_record_says():
    rows = {(row["name"], row["clients"]): row for row in serving.STUDY.read_record()["rows"]}
    ours, waits, python = "lltm_serve", "lltm_serve, batches wait 2 ms", "server in Python"
    assert rows[ours, 16]["per_second"] > rows[python, 16]["per_second"]
    for clients in (1, 16):
        assert rows[waits, clients]["p50_ms"] > rows[ours, clients]["p50_ms"]
        assert rows[waits, clients]["per_second"] < rows[ours, clients]["per_second"]
    package, eager = rows["call: package, in Python", 1], rows["call: eager", 1]
    assert 0.7 < package["p50_ms"] / eager["p50_ms"] < 1.3


def test_torchscript_is_deprecated():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.script(torch.nn.Linear(2, 2))
    assert "`torch.jit.script` is deprecated" in str(caught[0].message)


WITHOUT = """
def build_program():
    raise deploy.MissingPackage("lltm_serve needs boost/beast/http.hpp")

deploy.build_program = build_program
"""


@pytest.mark.needs("jupytext", "nbformat", "nbclient", "ipykernel", "matplotlib")
def test_without_the_program_one_line_says_why(monkeypatch):
    """The other cells run to the end."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    folder = ROOT / "work" / "executed"
    folder.mkdir(parents=True, exist_ok=True)
    page = nbformat.reads(notebooks.render_ipynb(notebooks.NOTEBOOKS / "08_deploy.py"), as_version=4)
    imported = next(k for k, cell in enumerate(page.cells) if "from common import deploy" in cell.source)
    page.cells.insert(imported + 1, nbformat.v4.new_code_cell(WITHOUT))
    NotebookClient(page, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    printed = "".join(output.get("text", "") for cell in page.cells for output in cell.get("outputs", []))
    assert printed.count("are skipped. lltm_serve needs boost/beast/http.hpp\n") == 1
    assert "GET /health" not in printed
