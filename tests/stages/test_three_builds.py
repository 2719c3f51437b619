"""Stage 2 built in its three ways, and what notebook 02 adds to it in C++: autograd and the loop over time.

The C++ of the notebook is read out of its source, so that what is tested is what a learner sees.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.autograd.gradcheck import gradcheck
from torch.utils.cpp_extension import load, load_inline

from common.build.cell_module import lltm_sequence
from common.build.modules import load_stage
from common.cell.case import GRADS, LAYOUTS, Case, difference, outputs
from common.paths import ROOT
from common.stages import get_stage
from support.proofs.files import stage_files

pytestmark = [
    pytest.mark.needs("g++", "ninja"),
    pytest.mark.proof("stages' tests", files=[*stage_files(2), "notebooks/02c_faster_backward.py"]),
]

SOURCE = get_stage(2).folder / "csrc" / "lltm.cpp"
DEVICES = [
    pytest.param("cpu"),
    pytest.param("cuda", marks=pytest.mark.needs("gpu")),
]
FUNCTIONS = ["forward", "backward", "lltm", "lltm_sequence"]


def from_notebook(*names: str) -> str:
    """The strings that notebook 02c assigns to these names, one after another."""
    tree = ast.parse((ROOT / "notebooks" / "02c_faster_backward.py").read_text(encoding="utf-8"))
    strings = {
        node.targets[0].id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    return "".join(strings[name] for name in names)


def cell_around(module: ModuleType):
    """Stage 2's own Python, executed around another build of its C++."""
    text = (get_stage(2).folder / "lltm.py").read_text().replace("from . import _C\n", "")
    around = SimpleNamespace(**{"_C": module, "__name__": "lltm"})
    exec(compile(text, "lltm.py", "exec"), vars(around))
    return around.lltm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `load` and `load_inline` of this file build."""
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture(scope="module")
def inline(folder: Path) -> ModuleType:
    """The stage's source with the notebook's autograd and loop appended, and bindings from `functions=`."""
    cell = SOURCE.read_text().partition("PYBIND11_MODULE")[0]
    source = from_notebook("LOOP_HEADERS") + cell + from_notebook("AUTOGRAD", "SEQUENCE")
    (folder / "inline").mkdir()
    return load_inline(
        "inline",
        source,
        functions=FUNCTIONS,
        no_implicit_headers=True,
        extra_cflags=["-O1"],
        build_directory=str(folder / "inline"),
    )


IN_A_PROCESS_OF_ITS_OWN = """
import sys, torch, lltm_stage2
assert "common" not in sys.modules and lltm_stage2.__file__.startswith(sys.argv[1]), lltm_stage2.__file__
given = torch.load(sys.argv[2])
inputs = [tensor.requires_grad_() for tensor in given["inputs"]]
results = lltm_stage2.lltm(*inputs)
gradients = torch.autograd.grad(results, inputs, given["gradients"])
torch.save([tensor.detach() for tensor in (*results, *gradients)], sys.argv[3])
"""


@pytest.mark.syllabus("2.4a", "2.4b", "2.4c")
def test_pip_installs_a_package_that_works_anywhere(tmp_path: Path) -> None:
    copy, installed, elsewhere = tmp_path / "stage2", tmp_path / "installed", tmp_path / "elsewhere"
    shutil.copytree(get_stage(2).folder, copy)
    elsewhere.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*pip, "--target", str(installed), str(copy)], cwd=elsewhere, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(copy)  # nothing of the sources is needed any more

    case = Case(3, 5, 70)
    given = {"inputs": [t.detach() for t in case.inputs().values()], "gradients": case.gradients()}
    torch.save(given, elsewhere / "given.pt")
    arguments = [str(installed), "given.pt", "got.pt"]
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN, *arguments],
        cwd=elsewhere, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = ("new_h", "new_cell", "d_input", "d_weights", "d_bias", "d_old_h", "d_old_cell")
    got: dict[str, Tensor] = dict(zip(names, torch.load(elsewhere / "got.pt"), strict=True))
    assert difference(case, got) is None


@pytest.mark.syllabus("2.5a", "2.5b", "2.5d", "2.5f")
def test_load(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    build = folder / "loaded"
    build.mkdir()
    monkeypatch.chdir(tmp_path)  # an absolute path works from anywhere
    module = load("loaded", [str(SOURCE)], build_directory=str(build))
    assert {"build.ninja", "lltm.o", "loaded.so"} <= {path.name for path in build.iterdir()}
    flags = next(line for line in (build / "build.ninja").read_text().splitlines() if line.startswith("cflags"))
    assert "-DTORCH_EXTENSION_NAME=loaded" in flags
    assert " -O" not in flags
    case = Case(3, 5, 70)
    assert difference(case, outputs(cell_around(module), case)) is None

    compiled = (build / "lltm.o").stat().st_mtime_ns
    assert load("loaded", [str(SOURCE)], build_directory=str(build)).__name__ == "loaded"
    assert (build / "lltm.o").stat().st_mtime_ns == compiled  # not compiled again


TWO_FILES = {
    "number.cpp": "int answer() { return 41; }\n",
    "module.cpp": """
#include <Python.h>
int answer();
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "two_files"};
PyMODINIT_FUNC PyInit_two_files() {
  PyObject* self = PyModule_Create(&definition);
  PyModule_AddIntConstant(self, "answer", answer());
  return self;
}
""",
}
LOAD = """
import logging, sys
from torch.utils.cpp_extension import load
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.INFO)
module = load("two_files", ["number.cpp", "module.cpp"], verbose="verbose" in sys.argv)
print("answer", module.answer)
"""


@pytest.mark.syllabus("2.5b", "2.5c", "2.5e")
def test_after_an_edit_only_what_changed_is_compiled_and_verbose_shows_it(tmp_path: Path) -> None:
    """In processes of their own: one that has the module already would have to give it another name."""
    for name, text in TWO_FILES.items():
        (tmp_path / name).write_text(text)

    def loaded(*options: str) -> str:
        environment = {**os.environ, "TORCH_EXTENSIONS_DIR": str(tmp_path / "build")}
        command, both = (
            [sys.executable, "-c", LOAD, *options],
            {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT},
        )
        done = subprocess.run(command, cwd=tmp_path, env=environment, text=True, **both)
        assert done.returncode == 0, done.stdout
        return done.stdout

    objects = [tmp_path / "build" / "two_files" / name for name in ("number.o", "module.o")]
    quiet = loaded()
    assert "answer 41" in quiet
    assert " -c " not in quiet
    assert str(tmp_path / "build") not in quiet
    before = [path.stat().st_mtime_ns for path in objects]
    (tmp_path / "number.cpp").write_text(TWO_FILES["number.cpp"].replace("41", "42"))
    shown = loaded("verbose")
    assert "answer 42" in shown
    assert [path.stat().st_mtime_ns == time for path, time in zip(objects, before, strict=True)] == [False, True]
    compiled = [line for line in shown.splitlines() if line.startswith("[") and " -c " in line]
    assert len(compiled) == 1, shown
    assert "number.cpp" in compiled[0]
    assert str(tmp_path / "build") in shown.replace(compiled[0], ""), "the folder, at log level INFO"


@pytest.mark.needs("setuptools")
@pytest.mark.syllabus("2.4e")
def test_setup_py_install_warns_that_it_is_deprecated(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup(name='old', py_modules=['old'])\n")
    (tmp_path / "old.py").write_text("")

    def said(*command: str) -> str:
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "SetuptoolsDeprecationWarning: setup.py install is deprecated" in said(
        "setup.py", "install", "--root", "r"
    )
    options = ["--no-build-isolation", "--no-index", "--no-deps", "--target", "installed", "."]
    assert "eprecat" not in said("-m", "pip", "install", "--disable-pip-version-check", *options)
    assert (tmp_path / "installed" / "old.py").exists()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.syllabus("2.5g", "2.5h", "2.7d")
def test_load_inline(inline: ModuleType, device: str) -> None:
    case = Case(3, 5, 70, device=device)
    assert difference(case, outputs(cell_around(inline), case)) is None


@pytest.mark.parametrize("device", DEVICES)
def test_autograd_in_cpp(inline: ModuleType, device: str) -> None:
    cases = [Case(3, 5, 70, device=device, layout=layout) for layout in LAYOUTS]
    cases += [Case(3, 5, 70, device=device, grads=grads) for grads in GRADS]
    cases += [Case(3, 5, 70, device=device, requires_grad=wanted) for wanted in (("weights", "bias"), ("old_h",), ())]
    cases += [Case(0, 4, 8, device=device), Case(3, 5, 70, device=device, bias_shift=1e4)]
    for case in cases:
        assert difference(case, outputs(inline.lltm, case)) is None


def test_autograd_in_cpp_passes_gradcheck_and_refuses_second_derivatives(inline: ModuleType) -> None:
    inputs = tuple(Case(2, 3, 4, dtype=torch.float64).inputs().values())
    assert gradcheck(inline.lltm, inputs)
    loss = sum(result.square().sum() for result in inline.lltm(*inputs))
    with pytest.raises(RuntimeError, match="second derivatives"):
        torch.autograd.grad(loss, inputs, create_graph=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("T", [1, 9])
@pytest.mark.syllabus("2.9a")
def test_the_loop_in_cpp_equals_the_loop_in_python(inline: ModuleType, T: int, device: str) -> None:
    given = Case(3, 5, 70, dtype=torch.float64, device=device).inputs()
    numbers = torch.Generator().manual_seed(T)
    steps = torch.randn(T, 3, 5, generator=numbers, dtype=torch.float64).to(device).requires_grad_()
    leaves = [steps, *(given[name] for name in ("weights", "bias", "old_h", "old_cell"))]

    outputs_py, state = lltm_sequence(load_stage(1).lltm, *leaves)
    in_python, in_cpp = (outputs_py, *state), inline.lltm_sequence(*leaves)
    gradients = [torch.randn(t.shape, generator=numbers, dtype=t.dtype).to(device) for t in in_python]
    expected = [*in_python, *torch.autograd.grad(in_python, leaves, gradients)]
    got = [*in_cpp, *torch.autograd.grad(in_cpp, leaves, gradients)]
    names = ("outputs", "h", "cell", "d_inputs", "d_weights", "d_bias", "d_h0", "d_cell0")
    for name, one, other in zip(names, got, expected, strict=True):
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.syllabus("2.9b")
def test_the_loop_in_cpp_is_one_call_from_python_whatever_the_length(inline: ModuleType) -> None:
    """What it saves is the same for every step, so it shows where steps are small."""

    def calls(run: Callable[[], object]) -> int:
        events: list[str] = []
        sys.setprofile(lambda frame, event, argument: events.append(event))
        try:
            run()
        finally:
            sys.setprofile(None)
        return sum(event in ("call", "c_call") for event in events)

    def both(T: int) -> tuple[int, int]:
        given = {name: tensor.detach() for name, tensor in Case(3, 5, 7).inputs().items()}
        arguments = [torch.randn(T, 3, 5), *(given[name] for name in ("weights", "bias", "old_h", "old_cell"))]
        cell = cell_around(inline)
        return calls(lambda: lltm_sequence(cell, *arguments)), calls(lambda: inline.lltm_sequence(*arguments))

    (short_python, short_cpp), (long_python, long_cpp) = both(4), both(32)
    assert short_cpp == long_cpp
    assert long_python - short_python >= 28, "at least one for each step"
