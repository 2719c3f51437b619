"""Stages 3 and 4: what they promise beyond agreeing with the reference, and what building them wrongly says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from common import paths, stages
from common.build import modules
from common.cell.case import Case, difference, outputs
from common.errors import UserError
from common.inline import device, inline
from common.stages import Stage
from support.proofs.files import stage_files

pytestmark = [pytest.mark.needs("g++"), pytest.mark.proof("stages' tests", files=stage_files(3, 4))]


@pytest.fixture(params=[3, 4], ids=["stage3", "stage4"])
def number(request) -> int:
    return request.param


def place(number: int) -> str:
    """Where the tensors of a stage live on the target that it is loaded for."""
    return "cuda" if modules.load_stage(number).TARGET == "cuda" else "cpu"


def binding(number: int):
    """The compiled module of a stage."""
    return sys.modules[f"{modules.load_stage(number).__package__}._C"]


def tensors(number: int, *size: int, **options: object) -> dict[str, torch.Tensor]:
    """The five arguments, without gradients."""
    inputs = Case(*size, device=place(number), **options).inputs()
    return {name: tensor.detach() for name, tensor in inputs.items()}


def operations(call) -> list[str]:
    """The ATen operations that a call makes, in order."""
    call()
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        call()
    return [event.name.removeprefix("aten::") for event in profiler.events() if event.name.startswith("aten::")]


@pytest.fixture
def copy(tmp_path) -> Stage:
    """Stage 3 in a folder of its own, to be spoilt."""
    original = stages.get_stage(3)
    shutil.copytree(original.folder, tmp_path / "stage", ignore=shutil.ignore_patterns("build", "__pycache__"))
    return Stage(93, str(tmp_path / "stage"), "cell", "Stage 3, spoilt", ("cuda", "emulator"))


@pytest.mark.syllabus("3.5b")
def test_without_explicit_instantiation_a_symbol_is_undefined(copy, tmp_path, monkeypatch):
    (tmp_path / "build").mkdir()
    (paths.build_dir() / "objects").mkdir(parents=True, exist_ok=True)
    (tmp_path / "build" / "objects").symlink_to(paths.build_dir() / "objects")  # all but one are there already
    monkeypatch.setenv("BUILD_DIR", str(tmp_path / "build"))
    kernels = copy.folder / "csrc" / "lltm_kernel.cu"
    text = kernels.read_text()
    spoilt = re.sub(r"^template cudaError_t launch_backward\(double.*?;\n", "", text, flags=re.MULTILINE | re.DOTALL)
    assert spoilt != text
    kernels.write_text(spoilt)
    with pytest.raises(UserError, match="builds, but does not load") as error:
        modules._import_stage(copy, "emulator")
    assert "launch_backward" in str(error.value)
    if shutil.which("c++filt"):
        assert "launch_backward<double>(double*" in str(error.value)


@pytest.mark.needs("ninja", "setuptools")
@pytest.mark.syllabus("3.1c")
@pytest.mark.parametrize(
    ("kind", "second"),
    [("CppExtension", "lltm.cc"), pytest.param("CUDAExtension", "lltm.cu", marks=pytest.mark.needs("nvcc"))],
)
def test_two_sources_of_one_base_name(copy, kind, second):
    setup = copy.folder / "setup.py"
    setup.write_text(setup.read_text().replace("lltm_kernel.cu", second).replace("CUDAExtension", kind))
    # Ninja refuses before anything would be compiled, so that any architecture will do.
    environment = {**os.environ, "TORCH_CUDA_ARCH_LIST": "9.0"}
    command = [sys.executable, "setup.py", "build_ext", "--build-temp", "temp"]
    done = subprocess.run(command, cwd=copy.folder, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert re.search(r"multiple rules generate .*lltm\.o", done.stdout + done.stderr)


@pytest.mark.needs("setuptools")
@pytest.mark.syllabus("3.1c")
def test_without_ninja_one_of_two_sources_is_never_compiled():
    from setuptools._distutils.ccompiler import new_compiler

    compiler = new_compiler()
    compiler.src_extensions = [*compiler.src_extensions, ".cu"]
    sources = ["lltm.cpp", "lltm.cu"]
    assert len(compiler._setup_compile("temp", None, None, sources, [], [])[4]) == 1
    stage = [path.stem for path in (stages.get_stage(3).folder / "csrc").glob("*.c*")]
    assert len(set(stage)) == len(stage)


@pytest.mark.syllabus("3.5a")
def test_the_kernels_of_stage_3_know_no_torch():
    csrc = stages.get_stage(3).folder / "csrc"
    text = (csrc / "lltm_kernel.cu").read_text() + (csrc / "lltm_math.h").read_text()
    included = set(re.findall(r"#include [<\"]([^>\"]+)", text))
    assert included == {"cuda_runtime.h", "algorithm", "cmath", "cstdint", "lltm_math.h"}


@pytest.mark.syllabus("4.2c")
@pytest.mark.parametrize("layout", ["transposed", "sliced", "expanded"])
def test_stage_4_takes_strided_tensors_without_a_copy(layout):
    def laid_out(tensor):
        if layout == "expanded":
            return tensor[:1].expand_as(tensor)
        wide = torch.stack([tensor, tensor], 2)
        return tensor.t().contiguous().t() if layout == "transposed" else wide[..., 0]

    found = {}
    for number in (3, 4):
        module, inputs = binding(number), tensors(number, 3, 5, 70)
        inputs["old_cell"] = laid_out(inputs["old_cell"])
        new_h, new_cell, X, gates = module.forward(**inputs)
        grad_h, grad_cell = laid_out(torch.ones_like(new_h)), laid_out(torch.ones_like(new_h))
        assert not any(tensor.is_contiguous() for tensor in (inputs["old_cell"], grad_h, grad_cell))

        def both(module=module, inputs=inputs, given=(grad_h, grad_cell, inputs["weights"], X, gates, new_cell)):
            module.forward(**inputs)
            module.backward(*given, [True] * 5)

        found[number] = operations(both).count("contiguous")
    assert found == {3: 3, 4: 0}


@pytest.mark.syllabus("3.7c", "3.7d")
def test_only_products_and_memory_are_left_to_aten(number):
    case = Case(3, 5, 70, device=place(number))
    inputs, cell = case.inputs(), modules.load_stage(number).lltm
    names = operations(lambda: torch.autograd.grad(cell(*inputs.values()), list(inputs.values()), case.gradients()))
    assert [name for name in names if name in ("addmm", "mm", "cat")] == ["cat", "addmm", "mm", "mm"]
    assert not {"zeros", "zero_", "sigmoid", "tanh", "elu", "mul", "add"}.intersection(names)


@pytest.mark.syllabus("3.2c")
def test_large_candidates_have_a_finite_gradient(number):
    """elu's slope through a mask would be NaN from z = 89 on in float32, because exp(z) is infinite there."""
    case = Case(3, 5, 70, device=place(number), bias_shift=200)
    got = outputs(modules.load_stage(number).lltm, case)
    assert all(torch.isfinite(tensor).all() for tensor in got.values())
    assert difference(case, got) is None


@pytest.mark.syllabus("3.2a", "3.2d")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_elu_keeps_its_digits_near_zero(number, dtype):
    inputs = tensors(number, 1, 4, 16, dtype=dtype)
    z = -torch.logspace(-12, 0, 48, dtype=dtype, device=place(number))
    *_, gates = binding(number).forward(**inputs | {"weights": 0 * inputs["weights"], "bias": z})
    exact = torch.expm1(z[32:].double())
    assert ((gates.flatten()[32:] - exact) / exact).abs().max() < 4 * torch.finfo(dtype).eps


@pytest.mark.syllabus("3.4c")
def test_a_type_that_is_not_listed_is_refused_by_name(number):
    inputs = {name: tensor.half() for name, tensor in tensors(number, 2, 3, 4).items()}
    with pytest.raises(RuntimeError, match="input has dtype Half, expected Float or Double"):
        modules.load_stage(number).lltm(*inputs.values())


@pytest.mark.syllabus("3.6c")
def test_a_launch_that_the_device_refuses_is_reported_at_once(number, monkeypatch):
    if place(number) == "cuda":
        pytest.skip("only the emulated device can be made small enough to refuse this stage's grids")
    inputs, cell = tensors(number, 64, 2, 3), modules.load_stage(number).lltm
    monkeypatch.setenv("EMULATOR_DEVICE", "maxGridSize.y=63")
    with pytest.raises(RuntimeError, match="invalid argument"):
        cell(*inputs.values())
    monkeypatch.delenv("EMULATOR_DEVICE")
    assert torch.isfinite(cell(*inputs.values())[0]).all()


HOST = """
#include <ATen/core/Tensor.h>
void launch_double(float* x, int64_t count);
void twice(const at::Tensor& x) { launch_double(x.mutable_data_ptr<float>(), x.numel()); }
"""
KERNEL = """
#include <cuda_runtime.h>
#include <cstdint>
__global__ void double_kernel(float* x, int64_t count) {
  if (threadIdx.x < count) x[threadIdx.x] *= 2;
}
void launch_double(float* x, int64_t count) { double_kernel<<<1, 32>>>(x, count); }
"""


@pytest.fixture(scope="module")
def inline_builds(tmp_path_factory):
    """A build folder for the whole file that borrows the objects and headers which are there already."""
    folder = tmp_path_factory.mktemp("inline")
    for kept in ("objects", "headers"):
        (paths.build_dir() / kept).mkdir(parents=True, exist_ok=True)
        (folder / kept).symlink_to(paths.build_dir() / kept)
    return folder


@pytest.fixture
def inline_folder(inline_builds, monkeypatch) -> Path:
    monkeypatch.setenv("BUILD_DIR", str(inline_builds))
    return inline_builds


def test_inline_builds_a_text_and_says_for_what(inline_folder, capsys):
    x = torch.ones(5, device=device())
    inline("twice", HOST, KERNEL, ["twice"]).twice(x)
    assert x.tolist() == [2] * 5
    assert ("emulator" if device() == "cpu" else "nvcc") in capsys.readouterr().out
    thrice = inline("twice", HOST, KERNEL.replace("*= 2", "*= 3"), ["twice"])  # the same name, another text
    thrice.twice(x)
    assert x.tolist() == [6] * 5


def test_inline_names_the_line_that_does_not_compile(inline_folder):
    with pytest.raises(UserError, match=r"wrong does not build.\n.*(?:cuda.cu[:(]5|wrong.cu:4:).*") as error:
        inline("wrong", HOST, KERNEL.replace("count) x[", "counted) x["), ["twice"])
    assert "counted" in str(error.value)


@pytest.mark.syllabus("3.1b")
def test_a_forward_declaration_joins_the_two_files(inline_folder):
    declaration = "void launch_double(float* x, int64_t count);\n"
    assert declaration in HOST
    with pytest.raises(UserError, match=r"launch_double.* (?:was not declared|undeclared)"):
        inline("undeclared", HOST.replace(declaration, ""), KERNEL, ["twice"])
    with pytest.raises(ImportError, match=r"undefined symbol: .*launch_double"):  # what was declared nobody defines
        inline(
            "twice",
            HOST,
            KERNEL.replace("launch_double(float* x, int64_t", "launch_double(float* x, int32_t"),
            ["twice"],
        )
    x = torch.ones(3, device=device())
    inline("twice", HOST, KERNEL, ["twice"]).twice(x)
    assert x.tolist() == [2] * 3
