"""Wheels of stage 5: for several Pythons through the limited API, for several torches through the stable ABI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import torch

from common.build import host
from common.studies.wheels import STUDY
from common.studies.wheels import recorder as wheels
from support.programs import another_python
from support.proofs.files import stage_files

proof = pytest.mark.proof(
    "wheels",
    files=[*stage_files(5), "stages/stage5_custom_op/stable_abi/**/*"],
    uses=["common.studies.wheels.smoke_test"],
)

STAGE = wheels.STABLE.parent
PYTHON = Path(sys.executable)
PASSED = dict.fromkeys(("imported", "values", "operators", "compiled", "autocast"), "passed")
STABLE_ONLY = "should not be included when either TORCH_STABLE_ONLY or TORCH_TARGET_VERSION is defined"

built: dict[str, Path] = {}


@pytest.fixture
def wheel_of(tmp_path_factory):
    """The wheel of a kind, built once."""

    def wheel(kind: str) -> Path:
        if kind not in built:
            built[kind] = wheels.build_wheel(wheels.WHEEL_KINDS[kind][0], tmp_path_factory.mktemp("wheel"))
        return built[kind]

    return wheel


def installed(wheel: Path, place: Path) -> Path:
    """The library of a wheel, unpacked."""
    shutil.unpack_archive(wheel, place, "zip")
    (library,) = place.rglob("_C*.so")
    return library


KINDS = pytest.mark.parametrize("kind", ["limited API", "stable ABI"])


@proof
@KINDS
@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.5a")
def test_one_wheel_is_for_every_python(wheel_of, tmp_path, kind):
    wheel = wheel_of(kind)
    assert "-cp310-abi3-" in wheel.name
    library = installed(wheel, tmp_path)
    assert library.name == "_C.abi3.so"
    assert wheels.undefined_symbols(library)["Python"] == ["PyModule_AddStringConstant", "PyModule_Create2"]


@proof
@KINDS
@pytest.mark.needs("g++", "another Python")
@pytest.mark.syllabus("5.5a")
def test_another_python_imports_it(wheel_of, tmp_path, kind):
    """That Python needs no torch for this: the library finds torch's own in the folder that is named."""
    library = installed(wheel_of(kind), tmp_path)
    command = [another_python(), "-c", "import sys, _C; print(sys.version_info.minor, _C.NAMESPACE)"]
    variables = {"LD_LIBRARY_PATH": str(Path(torch.__file__).parent / "lib"), "PYTHONPATH": str(library.parent)}
    told = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    minor, namespace = told.stdout.split()
    assert int(minor) != sys.version_info.minor
    assert namespace == wheels.WHEEL_KINDS[kind][1]


@proof
@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.5b", "5.5d")
def test_the_stable_variant_takes_nothing_of_the_cpp_of_torch(wheel_of):
    stable, limited = (wheels.undefined_in_wheel(wheel_of(kind)) for kind in ("stable ABI", "limited API"))
    assert stable["C++"] == []
    assert {"aoti_torch_library_def", "torch_call_dispatcher"} <= set(stable["C"])
    assert any("5torch7Library" in name for name in limited["C++"])


@proof
@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.5e")
def test_without_a_target_it_takes_what_is_new(wheel_of, tmp_path):
    """What torch 2.13 brought is asked for, whatever the source uses; see the error in stable_abi/README.md."""
    new = "torch_exception_get_what"
    if torch.torch_version.TorchVersion(torch.__version__) < (2, 13):
        pytest.skip("this torch has nothing that 2.11 lacks")
    assert new not in wheels.undefined_in_wheel(wheel_of("stable ABI"))["C"]
    folder = shutil.copytree(wheels.STABLE, tmp_path / "untargeted")
    setup = (folder / "setup.py").read_text()
    (folder / "setup.py").write_text(re.sub(r'    \("TORCH_TARGET_VERSION".*\n', "", setup))
    assert new in wheels.undefined_in_wheel(wheels.build_wheel(folder, tmp_path))["C"]


@proof
@KINDS
@pytest.mark.needs("g++", "pip")
@pytest.mark.syllabus("5.5a", "5.5b")
def test_it_runs_where_there_is_no_compiler(wheel_of, kind):
    assert wheels.try_wheel(PYTHON, wheel_of(kind), wheels.WHEEL_KINDS[kind][1]) == PASSED


@proof
@pytest.mark.needs("g++", "nvcc", "pip")
@pytest.mark.syllabus("5.5b")
def test_the_stable_variant_has_kernels_too(tmp_path):
    """On a machine without a GPU it is built, and its CPU side runs."""
    wheel = wheels.build_wheel(wheels.STABLE, tmp_path, cuda=True)
    needed = wheels.undefined_in_wheel(wheel)
    assert needed["C++"] == []
    assert {"aoti_torch_get_current_cuda_stream", "torch_c10_cuda_check_msg"} <= set(needed["C"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    assert wheels.try_wheel(PYTHON, wheel, wheels.WHEEL_KINDS["stable ABI"][1], device) == PASSED


@proof
@pytest.mark.needs("g++", "another torch")
@pytest.mark.syllabus("5.5b", "5.5d")
def test_only_the_stable_variant_runs_with_another_torch(wheel_of):
    other = Path(os.environ["OTHER_TORCH"])
    assert wheels.minor_version(wheels.read_versions(other)["torch"]) != wheels.minor_version(torch.__version__)
    stable, limited = (
        wheels.try_wheel(other, wheel_of(kind), wheels.WHEEL_KINDS[kind][1]) for kind in ("stable ABI", "limited API")
    )
    assert stable == PASSED
    assert "undefined symbol" in limited["imported"]


@pytest.mark.syllabus("5.5a", "5.5b", "5.5d")
def test_what_is_recorded():
    """The trial that the READMEs and the notebook quote, of two Pythons and two versions of torch at least."""
    record = STUDY.read_record()
    here = tuple(wheels.minor_version(record["built_with"][what]) for what in ("python", "torch"))
    rows = {
        (row["kind"], wheels.minor_version(row["python"]), wheels.minor_version(row["torch"])): row["checks"]
        for row in record["rows"]
    }
    pythons, torches = ({key[at] for key in rows} for at in (1, 2))
    assert len(pythons) >= 2
    assert wheels.OLDEST_STABLE_TORCH in torches
    assert here[1] in torches - {wheels.OLDEST_STABLE_TORCH}
    for (kind, python, version), checks in rows.items():
        if kind == "stable ABI" or (kind == "limited API" and version == here[1]):
            assert checks == PASSED, (kind, python, version)
        elif kind == "limited API":
            assert "undefined symbol" in checks["imported"]
        elif python != here[0]:
            assert "not a supported wheel" in checks["install"]
        elif version == here[1]:
            assert checks == {"imported": "passed", "values": "passed"}
        else:  # the import succeeds: nothing says that this wheel is for another torch
            assert checks == {"imported": "passed", "values": "ended by SIGSEGV"}


# What is forbidden, as a source that says it, and what the compiler answers.
LIMITED = {  # torch/extension.h and torch/python.h bring pybind11, after half a minute of compiling
    "pybind11": ("#include <pybind11/pybind11.h>", "pybind11/.*: error"),
    "pybind.h": ("#include <torch/csrc/utils/pybind.h>", "‘_?Py\\w+’ was not declared"),
    "macros": (
        "#include <Python.h>\nPyObject* first(PyObject* tuple) { return PyTuple_GET_ITEM(tuple, 0); }",
        "‘PyTuple_GET_ITEM’ was not declared in this scope",
    ),
    "structures": (
        "#include <Python.h>\nconst char* name(PyObject* of) { return Py_TYPE(of)->tp_name; }",
        "invalid use of incomplete type ‘PyTypeObject’",
    ),
}
STABLE = {
    **{
        header: (f"#include <{header}>", STABLE_ONLY)
        for header in (
            *("ATen/core/Tensor.h", "ATen/Dispatch.h", "ATen/Parallel.h", "torch/library.h", "torch/extension.h"),
            *("c10/util/Exception.h", "c10/util/Half.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAStream.h"),
            "torch/csrc/autograd/custom_function.h",
        )
    },
    "operators of ATen": (
        "auto sum(Tensor a, Tensor b) { return torch::stable::addmm(a, a, b); }",
        "‘addmm’ is not a",
    ),
    "methods": ("auto copy(Tensor a) { return a.contiguous(); }", "has no member named ‘contiguous’"),
    "arithmetic": ("auto sum(Tensor a, Tensor b) { return a + b; }", "no match for ‘operator\\+’"),
    "TORCH_CHECK": ("void check(Tensor a) { TORCH_CHECK(a.defined()); }", "‘TORCH_CHECK’ was not declared"),
    "what is newer": ("bool has(Tensor a) { return a.has_storage(); }", "has no member named ‘has_storage’"),
    "functions that are not boxed": (
        'Tensor same(Tensor a) { return a; }\nSTABLE_TORCH_LIBRARY_IMPL(x, CPU, m) { m.impl("same", &same); }',
        "invalid conversion from .* to ‘void \\(\\*\\)\\(StableIValue\\*",
    ),
}
HEADERS = "#include <torch/csrc/stable/library.h>\n#include <torch/csrc/stable/ops.h>\nusing torch::stable::Tensor;\n"


def compile_(source: str, *flags: str) -> subprocess.CompletedProcess[str]:
    from torch.utils.cpp_extension import include_paths

    include = [f"-I{path}" for path in (*include_paths(), sysconfig.get_paths()["include"])]
    command = ["g++", host.cpp_standard(), "-x", "c++", "-fsyntax-only", "-fmax-errors=2", *flags, *include, "-"]
    quoting = {**os.environ, "LC_ALL": "C.UTF-8"}  # as the messages above are written
    return subprocess.run(command, input=source, env=quoting, capture_output=True, text=True)


@proof
@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.5c")
@pytest.mark.parametrize("what", LIMITED)
def test_what_the_limited_api_forbids(what):
    source, answer = LIMITED[what]
    refused = compile_(source, "-DPy_LIMITED_API=0x030A0000")
    assert refused.returncode != 0
    assert re.search(answer, refused.stderr), refused.stderr
    assert compile_(source).returncode == 0  # without the limit


@proof
@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.5c")
@pytest.mark.parametrize("what", STABLE)
def test_what_the_stable_abi_forbids(what):
    source, answer = STABLE[what]
    source = source if source.startswith("#") else HEADERS + source
    refused = compile_(source, "-DTORCH_TARGET_VERSION=0x020B000000000000")
    assert refused.returncode != 0
    assert re.search(answer, refused.stderr), refused.stderr


@proof
@pytest.mark.needs("g++")
def test_the_headers_of_the_stable_abi_compile():
    """So that what is refused above is refused for what it says."""
    allowed = compile_(HEADERS + "Tensor same(Tensor a) { return a; }", "-DTORCH_TARGET_VERSION=0x020B000000000000")
    assert allowed.returncode == 0, allowed.stderr


def test_the_variant_shares_what_it_can():
    """It is to be read as a diff against the stage: these files have none."""
    for name in ("lltm.py", "csrc/lltm_math.h"):
        assert (STAGE / "stable_abi" / name).read_text() == (STAGE / name).read_text(), name


FAKES = {
    "values": (
        "def lltm(input, weights, bias, old_h, old_cell): return old_h * 2, old_cell * 2",
        "new_h is wrong at",
    ),
    "signal": ("import os\ndef lltm(*arguments): os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
    "imported": (
        "raise ImportError('_C.abi3.so: undefined symbol: gone')",
        "ImportError: _C.abi3.so: undefined symbol",
    ),
}


@proof
@pytest.mark.needs("pip")
@pytest.mark.parametrize("mistake", FAKES)
def test_a_trial_tells_what_is_wrong(tmp_path, mistake):
    source, told = FAKES[mistake]
    checks = wheels.try_wheel(PYTHON, fake_wheel(tmp_path, source), "fake")
    assert told in checks["values" if mistake == "signal" else mistake]
    assert "passed" not in (checks["imported"] if mistake == "imported" else checks["values"])


@pytest.mark.needs("pip")
def test_a_wheel_for_another_python_is_not_installed(tmp_path):
    checks = wheels.try_wheel(PYTHON, fake_wheel(tmp_path, "", tag="cp37-cp37m-any"), "fake")
    assert checks == {
        "install": f"pip said: {next(tmp_path.glob('*.whl')).name} is not a supported wheel on this platform."
    }


def fake_wheel(folder: Path, source: str, tag: str = "py3-none-any") -> Path:
    """A wheel of a package `fake` whose only source is this."""
    path = folder / f"fake-1.0-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fake/__init__.py", f"from . import _C\n{source}\n")
        archive.writestr("fake/_C.py", "")
        archive.writestr("fake-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: fake\nVersion: 1.0\n")
        archive.writestr("fake-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr("fake-1.0.dist-info/RECORD", "")
    return path
