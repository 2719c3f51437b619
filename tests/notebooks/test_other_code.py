"""What notebook 02e says: the example that links zlib, and old code beside new, from the notebook's own texts."""

from __future__ import annotations

import copy
import importlib
import importlib.machinery
import importlib.util
import inspect
import pickle
import re
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch.torch_version import TorchVersion
from torch.utils.cpp_extension import load

from common.paths import ROOT
from support.labs import OTHER_CODE, definitions
from support.proofs.files import notebook_files
from support.pypi import install
from support.sandbox import Sandbox, compile

pytestmark = pytest.mark.proof(
    "claims of notebooks", files=[*notebook_files("02e_other_code"), "stages/stage2_aten/another_library/*"]
)


FOLDER = ROOT / "stages" / "stage2_aten" / "another_library"


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The example, built by its setup.py, without optimisation."""
    sandbox = Sandbox(tmp_path_factory.mktemp("pack"))
    for name in ("pack.cpp", "setup.py"):
        sandbox.write(name, (FOLDER / name).read_text())
    sandbox.works("python setup.py -q build_ext --build-lib built", CFLAGS="-O0")
    sys.path.insert(0, str(sandbox.folder / "built"))
    try:
        return importlib.import_module("pack")
    finally:
        sys.path.pop(0)


def tensors() -> list[torch.Tensor]:
    whole = torch.randn(9, 14)
    views = [whole, whole.t(), whole[1:, ::3], whole[0, 0], whole[:0], torch.ones(()).expand(3, 4)]
    return [*views, whole.double(), whole.bfloat16(), torch.randn(5, dtype=torch.cfloat).conj().imag]


@pytest.mark.needs("g++", "zlib")
@pytest.mark.syllabus("2.10a", "2.10b")
def test_what_zlib_packed_comes_back(pack):
    for x in tensors():
        packed = pack.pack(x)
        assert torch.equal(pack.unpack(packed, x), x)
        dense = x.resolve_neg().contiguous().view(-1).view(torch.uint8)
        assert zlib.decompress(packed.numpy().tobytes()) == dense.numpy().tobytes()
    assert b"libz.so" in Path(pack.__file__).read_bytes()
    zeros = torch.zeros(1000)
    assert pack.pack(zeros).numel() < pack.pack(zeros, level=0).numel() / 50


@pytest.mark.needs("g++", "zlib")
def test_what_cannot_be_packed_is_refused(pack):
    packed = pack.pack(torch.ones(3))
    for message, call in (
        ("pack: x has dtype Long", lambda: pack.pack(torch.ones(3).long())),
        ("pack: x is on meta", lambda: pack.pack(torch.ones(3, device="meta"))),
        ("pack: level is 10, expected 0 to 9", lambda: pack.pack(torch.ones(3), 10)),
        ("unpack: packed has dtype Float", lambda: pack.unpack(packed.float(), torch.ones(3))),
        (r"does not contain a tensor of shape \[2\] in Float", lambda: pack.unpack(packed, torch.ones(2))),
        (r"does not contain a tensor of shape \[4\] in Float", lambda: pack.unpack(packed, torch.ones(4))),
        (r"does not contain a tensor of shape \[3\] in Float", lambda: pack.unpack(packed[:-1], torch.ones(3))),
        ("unpack: like has dtype Long", lambda: pack.unpack(packed, torch.ones(3).long())),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.11a", "2.11b", "2.11c")
def test_the_old_text_is_refused(tmp_path):
    sandbox = Sandbox(tmp_path)
    sandbox.write("module.cpp", OTHER_CODE["OLD"])
    said = sandbox.fails(compile("-DTORCH_EXTENSION_NAME=x"))
    assert "cannot convert 'const at::DeprecatedTypeProperties' to 'c10::ScalarType'" in said
    assert "'AT_CHECK' was not declared in this scope" in said
    assert "Tensor.data<T>() is deprecated. Please use Tensor.data_ptr<T>() instead." in said


@pytest.mark.syllabus("2.11e", "2.11f")
def test_functions_then_and_now():
    assert not hasattr(torch.nn, "Function")

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_variables
            return 2 * x * grad

    x = torch.tensor([3.0], requires_grad=True)
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_tensors'"):
        Square.apply(x).backward()
    assert x.grad == 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method"):
            Square()(x)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """RunningMean bound without py::pickle and with it."""
    sandbox, made = Sandbox(tmp_path_factory.mktemp("classes")), {}
    for name, pickled in (("bare", ""), ("pickled", OTHER_CODE["PICKLED"])):
        source = sandbox.write(f"{name}.cpp", OTHER_CODE["MEANS"].replace("PICKLED", pickled))
        flags = (f"-DTORCH_EXTENSION_NAME={name}", "-O0", "-ltorch_python")
        library = sandbox.compile_with_torch(f"{name}.so", *flags, source=str(source))
        loader = importlib.machinery.ExtensionFileLoader(name, str(library))
        made[name] = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, loader=loader))
        loader.exec_module(made[name])
        sys.modules[name] = made[name]  # pickle looks a class up by its module's name
    yield made
    for name in made:
        del sys.modules[name]


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.3f")
def test_objects_of_a_cpp_class_are_copied_by_py_pickle(classes):
    for name, made in classes.items():
        means = made.RunningMean(S=3)
        means.add(x=torch.ones(5, 3))
        means.add(torch.zeros(5, 3).t().contiguous().t())
        assert (means.mean.tolist(), means.rows) == ([0.5] * 3, 10)
        with pytest.raises(AttributeError):
            means.rows = 1
        if name == "bare":
            with pytest.raises(TypeError, match="RunningMean"):
                copy.deepcopy(means)
            continue
        for another in (copy.deepcopy(means), pickle.loads(pickle.dumps(means))):
            another.add(torch.ones(10, 3))
            assert (another.mean.tolist(), another.rows) == ([0.75] * 3, 20)
        assert (means.mean.tolist(), means.rows) == ([0.5] * 3, 10)


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.3f")
def test_a_module_does_not_find_tensors_in_a_cpp_object(classes):
    layer = torch.nn.Linear(2, 2)
    layer.means = classes["pickled"].RunningMean(3)
    assert [name for name, _ in layer.named_parameters()] == list(layer.state_dict()) == ["weight", "bias"]


# Arrays of other libraries ------------------------------------------------------------------------------------------

NOTEBOOK = definitions("02e_other_code")


@pytest.fixture(scope="module")
def any_array(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The notebook's extension, which includes no header of torch except that of DLPack's struct."""
    folder = tmp_path_factory.mktemp("any_array")
    (folder / "sum.cpp").write_text(OTHER_CODE["DLPACK"])
    return load("any_array", [str(folder / "sum.cpp")], build_directory=str(folder))


@pytest.mark.needs("g++", "ninja")
@pytest.mark.syllabus("2.10c")
def test_dlpack_hands_over_the_memory_of_any_library(any_array):
    assert re.findall("#include <(.+)>", OTHER_CODE["DLPACK"]) == ["ATen/dlpack.h", "pybind11/pybind11.h"]
    x = torch.randn(12)
    for array in (x, x[::3], x[1:].flip(0), x.numpy(), x.numpy()[::-2]):
        assert any_array.sum(array) == pytest.approx(float(array.sum()), rel=1e-5)
    for wrong in (x.double(), x.view(3, 4), x.long()):
        with pytest.raises(ValueError, match="expected an array of float32 on the CPU"):
            any_array.sum(wrong)
    with pytest.raises(BufferError, match="require gradient"):
        any_array.sum(x.clone().requires_grad_())
    with pytest.raises(BufferError, match="conjugate bit"):
        any_array.sum(torch.zeros(3, dtype=torch.complex64).conj())
    array = x.numpy().copy()
    torch.from_dlpack(array)[1] = 7
    assert array[1] == 7


@pytest.mark.needs("g++", "ninja")
@pytest.mark.syllabus("2.10d")
def test_the_consumer_passes_its_stream_or_nobody_waits(any_array, monkeypatch):
    asked = NOTEBOOK.asked_by
    assert "stream" not in asked(torch.from_dlpack, (1, 0))
    assert asked(any_array.sum, (1, 0)) == {}
    for address, passed in ((4711, 4711), (0, 1)):
        stream = SimpleNamespace(cuda_stream=address)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device, stream=stream: stream)
        assert asked(torch.from_dlpack, (2, 0))["stream"] == passed


@pytest.mark.skipif(TorchVersion(torch.__version__) < (2, 15), reason="torch 2.15 waits for nothing; others untried")
@pytest.mark.syllabus("2.10d")
def test_torch_s_own_default_is_to_wait_for_nothing():
    assert inspect.signature(torch.Tensor.__dlpack__).parameters["stream"].default == -1


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.3g", "2.10d")
def test_nanobind_takes_arrays_of_any_library_and_checks_them(tmp_path, monkeypatch):
    monkeypatch.setattr(NOTEBOOK, "NANOBIND", OTHER_CODE["NANOBIND"], raising=False)
    module = NOTEBOOK.build_by_nanobind(install("nanobind") / "nanobind", tmp_path)
    x = torch.randn(12)
    for array in (x, x[::3], x.numpy(), x.numpy()[::2]):
        assert module.sum(array) == pytest.approx(float(array.sum()), rel=1e-5)
    for wrong in (x.double(), x.view(3, 4), "text"):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            module.sum(wrong)
    assert "stream" not in NOTEBOOK.asked_by(module.sum, (1, 0))
    assert "nanobind" not in Path(torch.utils.cpp_extension.__file__).read_text()
