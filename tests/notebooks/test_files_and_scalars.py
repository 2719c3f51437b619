"""What notebook 03d says of files, numbers as arguments and the size of blocks, tried on its own texts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.torch_version import TorchVersion
from torch.utils.cpp_extension import load, load_inline

from common import load as load_stage
from common.build.nvcc import find_nvcc
from common.cell.case import Case
from common.emulator import load_extension
from common.inline import inline
from common.paths import ROOT, build_cache
from support.labs import definitions, texts
from support.proofs.files import notebook_files, stage_files

pytestmark = [
    pytest.mark.needs("g++", "ninja"),
    pytest.mark.proof("claims of notebooks", files=[*notebook_files("03d_files_and_scalars"), *stage_files(1, 3)]),
]

TEXTS = texts("03d_files_and_scalars")
NEEDS_NVCC = [
    pytest.mark.needs("nvcc"),
    pytest.mark.skipif(torch.version.cuda is None, reason="needs a torch for CUDA"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook's folder with a .cpp, a .cu and a setup.py."""
    folder = tmp_path_factory.mktemp("scaled_elu")
    for name, text in (("elu.cpp", "ELU_CPP"), ("elu_kernel.cu", "ELU_CU"), ("setup.py", "SETUP")):
        (folder / name).write_text(TEXTS[text].lstrip())
    return folder


@pytest.fixture(scope="module")
def extension(folder: Path) -> ModuleType:
    """The extension on the emulator, from its setup.py."""
    return load_extension(folder, cache=build_cache())


@pytest.fixture
def elu(extension: ModuleType, monkeypatch):
    """The notebook's Function."""
    notebook = definitions("03d_files_and_scalars")
    monkeypatch.setattr(notebook, "operators", torch.ops.scaled_elu, raising=False)
    return notebook.Elu.apply


def importable(module: str, folder: Path) -> str:
    """What a new process prints when it imports the module and calls its operator with a tensor on the CPU."""
    call = f"torch.ops.{module}.elu(torch.zeros(3), 0.5)"
    script = f"import torch, {module}\ntry:\n    {call}\nexcept RuntimeError as e:\n    print(e)"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True).stdout


# Files ------------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.1f")
def test_the_emulator_builds_the_pair_from_its_setup_py(extension):
    x = torch.tensor([-2.0, 0.0, 3.0])
    torch.testing.assert_close(torch.ops.scaled_elu.elu(x, 0.5), torch.nn.functional.elu(x, 0.5))
    torch.testing.assert_close(torch.ops.scaled_elu.elu(x), torch.nn.functional.elu(x))


@pytest.mark.syllabus("3.1f")
@pytest.mark.parametrize("how", [pytest.param(how, marks=NEEDS_NVCC) for how in ("load", "setup.py")])
def test_nvcc_builds_the_pair_by_its_paths_and_by_setup_py(folder, tmp_path, monkeypatch, how):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    if how == "load":
        sources = [str(folder / "elu.cpp"), str(folder / "elu_kernel.cu")]
        load("scaled_elu_by_path", sources, build_directory=str(tmp_path))
    else:
        command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", tmp_path, "--build-temp", tmp_path]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    module = "scaled_elu_by_path" if how == "load" else "scaled_elu"
    assert f"Could not run '{module}::elu' with arguments from the 'CPU' backend" in importable(module, tmp_path)


def stage3_text() -> tuple[str, str]:
    """The sources of stage 3 as the notebook passes them on: its own header inserted."""
    csrc = ROOT / "stages" / "stage3_cuda_pointers" / "csrc"
    maths = (csrc / "lltm_math.h").read_text().replace("#pragma once", "")
    kernels = (csrc / "lltm_kernel.cu").read_text()
    assert '#include "lltm_math.h"' in kernels
    return (csrc / "lltm.cpp").read_text(), kernels.replace('#include "lltm_math.h"', maths)


@pytest.mark.syllabus("3.1f")
def test_the_text_of_stage_3_runs_on_the_emulator():
    cpp, cu = stage3_text()
    built = inline("stage3_text", cpp.partition("PYBIND11_MODULE")[0], cu, ["forward", "backward"], target="emulator")
    case = Case(3, 5, 70, requires_grad=())
    want = load_stage(1).equations(*case.inputs().values())
    torch.testing.assert_close(tuple(built.forward(*case.inputs().values())[:2]), tuple(want))


@pytest.mark.syllabus("3.1f")
@pytest.mark.needs("nvcc")
@pytest.mark.skipif(torch.version.cuda is None, reason="needs a torch for CUDA")
def test_load_inline_builds_the_text_of_stage_3_with_its_own_binding(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "9.0")
    options = {"functions": None, "no_implicit_headers": True, "build_directory": str(tmp_path)}
    built = load_inline("stage3_inline", *stage3_text(), **options)
    with pytest.raises(RuntimeError, match="lltm: input is on cpu, expected a CUDA device"):
        built.forward(*Case(3, 5, 7).inputs().values())


# Numbers as arguments ---------------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.4e")
@pytest.mark.parametrize("alpha", [1, True, 2.5, -0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_alpha_reaches_the_kernel_and_the_gradient(elu, alpha, dtype):
    x = torch.randn(300, dtype=dtype, requires_grad=True)
    ours, want = elu(x, alpha), torch.nn.functional.elu(x, float(alpha))
    torch.testing.assert_close(ours, want)
    upstream = torch.randn(300, dtype=dtype)
    torch.testing.assert_close(*(torch.autograd.grad(y, x, upstream)[0] for y in (ours, want)))
    assert torch.autograd.grad(elu(x, alpha).sum(), x)[0].isfinite().all(), "the gradient of a sum is expanded"


@pytest.mark.syllabus("3.4e")
def test_what_a_scalar_refuses(extension):
    x, elu = torch.tensor([-2.0, 3.0]), torch.ops.scaled_elu.elu
    for number in (1e300, 1j):
        with pytest.raises(RuntimeError, match="cannot be converted to type float without overflow"):
            elu(x, number)
    assert torch.isfinite(elu(x.double(), 1e300)).all()
    for other in ("1", torch.tensor(1.0)):
        with pytest.raises(RuntimeError, match="Expected a value of type 'number' for argument 'alpha'"):
            elu(x, other)


@pytest.mark.syllabus("3.4e")
@pytest.mark.skipif(TorchVersion(torch.__version__) < (2, 15), reason="other versions are untried")
def test_pybind11_cannot_pass_a_scalar(extension):
    with pytest.raises(RuntimeError, match="pybind11 loading for c10::Scalar NYI"):
        extension.bound(torch.zeros(3), 1)


@pytest.mark.syllabus("3.4e")
def test_the_derivative_from_the_result_is_wrong_for_a_negative_alpha():
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    for alpha in (0.5, -0.5):
        y = torch.nn.functional.elu(x, alpha)
        (want,) = torch.autograd.grad(y.sum(), x)
        from_result = torch.where(y > 0, 1, y + alpha)
        assert torch.allclose(from_result, want) == (alpha > 0)
    with pytest.raises(RuntimeError, match="negative slope"):
        torch.nn.functional.elu(x * 1, -0.5, inplace=True).sum().backward()


# The size of blocks -----------------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.3g")
def test_larger_blocks_have_more_idle_threads(monkeypatch):
    notebook = definitions("03d_files_and_scalars")
    counting = inline("idle_threads", TEXTS["IDLE_CPP"], TEXTS["IDLE_CU"], ["count_idle"], target="emulator")
    monkeypatch.setattr(notebook, "counting", counting, raising=False)
    monkeypatch.setattr(notebook, "device", lambda: "cpu", raising=False)
    shares = {threads: [notebook.idle_share(S, threads) for S in (70, 128, 1025)] for threads in (256, 1024)}
    assert shares[256] == pytest.approx([186 / 256, 0.5, 255 / 1280])
    assert shares[1024] == pytest.approx([954 / 1024, 0.875, 1023 / 2048])


@pytest.mark.syllabus("3.3g")
@pytest.mark.needs("nvcc")
def test_a_thread_of_a_block_of_1024_has_at_most_64_registers(tmp_path):
    (tmp_path / "many.cu").write_text(TEXTS["MANY_REGISTERS"])
    command = [find_nvcc(), "-arch=sm_90", "-cubin", "-Xptxas", "-v", "many.cu", "-o", "many.cubin"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr
    pattern = r"sums_kernelILi(\d+).*?(\d+) bytes spill stores.*?Used (\d+) registers"
    found = {
        threads: (int(spilled), int(registers))
        for threads, spilled, registers in re.findall(pattern, said, re.DOTALL)
    }
    (no_spills, many), (spills, few) = found["256"], found["1024"]
    assert no_spills == 0 < spills, said
    assert few <= 64 < many, said
