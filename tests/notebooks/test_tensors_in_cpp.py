"""What notebook 02d says of tensors in C++, tried on its own texts, built as one module."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.utils.cpp_extension import load_inline

from support.labs import TENSORS, temporaries
from support.proofs.files import notebook_files

pytestmark = [
    pytest.mark.needs("g++", "ninja"),
    pytest.mark.proof("claims of notebooks", files=notebook_files("02d_tensors_in_cpp")),
]

FREED = struct.unpack("f", bytes([170] * 4))[0]  # a float of memory that was freed
FUNCTIONS = [name for key in ("MEMORY", "LIFETIMES", "TENSORS") for name in TENSORS[f"{key}_FUNCTIONS"]]


@pytest.fixture(scope="module")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    source = "".join(TENSORS[key] for key in ("HEADERS", "MEMORY", "LIFETIMES", "TENSORS"))
    folder = str(tmp_path_factory.mktemp("tensors"))
    options = {"no_implicit_headers": True, "extra_cflags": ["-O2"], "build_directory": folder}
    return load_inline("tensors_in_cpp", source, functions=FUNCTIONS, **options)


def perturbed(cpp: ModuleType, code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process in which freed memory is filled with 170."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cpp.__file__).parent), "MALLOC_PERTURB_": "170"}
    command = [sys.executable, "-c", f"import torch, {cpp.__name__} as cpp\n{code}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def numbers(cpp: ModuleType, code: str) -> list[float]:
    """The numbers that an expression gives in such a process."""
    done = perturbed(cpp, f"print(*({code}))")
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def views() -> dict[str, Tensor]:
    x = torch.arange(48.0).view(6, 8)
    return {"x": x, "rows": x[2:], "columns": x[:, 3:], "transposed": x.t(), "both": x[1:, ::2].t()}


@pytest.mark.syllabus("2.12a")
def test_all_pointers_share_the_memory(cpp):
    x = torch.zeros(3, 4)
    assert cpp.addresses(x) == [x.data_ptr()] * 3
    cpp.put(x, 5, 7)
    assert x[1, 1] == 7


@pytest.mark.syllabus("2.12a")
def test_a_lazy_clone_is_copied_when_a_pointer_to_write_is_asked_for(cpp):
    x = torch.arange(12.0).view(3, 4)
    lazy = torch._lazy_clone(x)
    assert torch._C._is_cow_tensor(lazy)
    assert cpp.element(lazy, 1, 1) == 5
    assert torch._C._is_cow_tensor(lazy)
    assert cpp.addresses(lazy)[1] != cpp.addresses(x)[1]
    assert not torch._C._is_cow_tensor(lazy)


@pytest.mark.syllabus("2.12b", "2.12q")
@pytest.mark.parametrize("name", views())
def test_strides_and_accessors_find_every_element(cpp, name):
    view = views()[name]
    first = view.untyped_storage().data_ptr()
    assert view.data_ptr() == first + 4 * view.storage_offset()
    for i in range(view.size(0)):
        for j in range(view.size(1)):
            assert cpp.element(view, i, j) == cpp.by_accessor(view, i, j) == view[i, j]


@pytest.mark.syllabus("2.12c")
@pytest.mark.parametrize("name", views())
def test_the_offset_must_not_be_added(cpp, name):
    view = views()[name]
    offset = view.storage_offset()
    assert cpp.offset_added(view, 0, 0) == 2 * offset  # the numbers of x are their places in its storage
    assert (cpp.offset_added(view, 0, 0) == view[0, 0]) == (offset == 0)


@pytest.mark.syllabus("2.12q")
def test_accessors_check_dtype_and_dimensions_but_no_index(cpp):
    x = torch.arange(12.0).view(3, 4)
    cpp.put_by_accessor(x.t(), 3, 0, 300)
    assert x[0, 3] == 300
    assert cpp.by_accessor(x, 0, 4) == x[1, 0]
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        cpp.by_accessor(x.double(), 0, 0)
    with pytest.raises(RuntimeError, match="expected 2 dims but tensor has 1"):
        cpp.by_accessor(x[0], 0, 0)


@pytest.mark.syllabus("2.12p")
def test_complex_numbers_in_memory(cpp):
    z = torch.randn(5, dtype=torch.complex64)
    assert cpp.as_floats(z) == torch.view_as_real(z).flatten().tolist()
    assert cpp.as_floats(z.conj()) == cpp.as_floats(z)
    assert cpp.as_floats(z.conj().resolve_conj()) == torch.view_as_real(z.conj().resolve_conj()).flatten().tolist()
    assert cpp.as_floats(z.conj().resolve_conj()) != cpp.as_floats(z)


@pytest.mark.syllabus("2.12s")
def test_a_complex_pointer_has_the_layout_of_other_libraries_types(cpp):
    z = torch.randn(5, dtype=torch.complex64)
    assert cpp.sum_of_squares(z) == pytest.approx(z.abs().square().sum().item(), rel=1e-6)


@pytest.mark.syllabus("2.12s")
def test_void_pointers_are_not_checked(cpp):
    doubles = torch.tensor([0.1], dtype=torch.float64)
    assert cpp.first_of_void(doubles.float()) == doubles.float().item()
    assert cpp.first_of_void(doubles) == doubles.view(torch.float32)[0].item() != doubles.float().item()
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        cpp.first_checked(doubles)


@pytest.mark.syllabus("2.12d", "2.12f")
def test_a_pointer_into_a_temporary_dangles(cpp):
    x = torch.randn(64, 64).t()
    assert cpp.kept(x, 4095) == x[-1, -1]
    assert cpp.dangling(x.contiguous(), 4095) == x[-1, -1]  # here contiguous() returns what it was given
    transposed = "torch.ones(64, 64).t()"
    found = numbers(cpp, f"cpp.dangling({transposed}, k) for k in (2000, 4000, 4095)")
    assert found == pytest.approx([FREED] * 3)
    assert numbers(cpp, f"cpp.kept({transposed}, k) for k in (0, 2000, 4095)") == [1, 1, 1]


@pytest.mark.syllabus("2.12d")
def test_memory_returned_to_the_system_is_a_crash(cpp):
    assert perturbed(cpp, "print(cpp.kept(torch.ones(4096, 4096).t(), 0))").stdout == "1.0\n"
    assert perturbed(cpp, "print(cpp.dangling(torch.ones(4096, 4096).t(), 0))").returncode < 0


@pytest.mark.syllabus("2.12e")
def test_an_accessor_of_a_temporary_dangles(cpp):
    found = numbers(cpp, "cpp.dangling_accessor(torch.ones(64, 64).t(), k, k) for k in (31, 63)")
    assert found == pytest.approx([FREED] * 2)


@pytest.mark.syllabus("2.12g")
def test_a_temporary_in_a_launch_lives_long_enough():
    x = torch.randn(64, 65).t()
    assert torch.equal(temporaries().in_the_call(x), 2 * x)
    with pytest.raises(RuntimeError, match="reads x after it was freed"):
        temporaries().before_the_call(x)


@pytest.mark.syllabus("2.12h")
def test_a_shape_from_a_braced_list_dangles(cpp):
    for rows, columns in ((5, 7), (1234567, 7654321)):
        assert cpp.as_argument(rows, columns) == cpp.named(rows, columns) == [rows, columns]
        assert cpp.returned(rows, columns) != [rows, columns]
        assert len(cpp.braced(rows, columns)) == 2  # of what, depends on the compiler


def arriving(loss) -> Tensor:
    """The gradient that a loss sends to a (2, 3)."""
    seen = []
    y = 1 * torch.ones(2, 3, requires_grad=True)
    y.register_hook(seen.append)
    loss(y).backward()
    return seen[0]


@pytest.mark.syllabus("2.12i")
def test_the_gradient_of_a_sum_has_one_element(cpp):
    grad = arriving(torch.sum)
    assert (grad.stride(), grad.untyped_storage().nbytes()) == ((0, 0), 4)
    assert torch.equal(cpp.walk_dense(grad), 2 * grad)
    six = torch.arange(1.0, 7.0)
    assert torch.equal(cpp.walk(six[0].expand(2, 3)), 2 * six.view(2, 3))  # the one number's neighbours


@pytest.mark.syllabus("2.12j")
def test_the_gradient_of_a_mean_is_full(cpp):
    grad = arriving(torch.mean)
    assert (grad.stride(), grad.untyped_storage().nbytes()) == ((3, 1), 24)
    assert torch.equal(cpp.walk(grad), 2 * grad)


@pytest.mark.syllabus("2.12k")
def test_an_undefined_tensor_looks_empty(cpp):
    assert cpp.nothing() is None
    assert cpp.describe(None) == (False, [0], 0)
    assert cpp.describe(torch.empty(0)) == (True, [0], 0)
    with pytest.raises(RuntimeError, match=r"undefined Tensor in C\+\+"):
        cpp.plus_one(None)
    with pytest.raises(TypeError):
        cpp.like(None)


@pytest.mark.syllabus("2.12l", "2.12o")
def test_options_reach_the_factory(cpp):
    for dtype in (torch.float64, torch.int8):
        for device in ("cpu", "meta"):
            made = cpp.of_dtype(dtype, torch.device(device))
            assert (made.dtype, made.device.type, made.requires_grad) == (dtype, device, False)
    assert cpp.sparse().layout == torch.sparse_coo
    assert cpp.torch_with_gradient().requires_grad
    assert cpp.marked().requires_grad
    with pytest.raises(RuntimeError, match="requires_grad"):
        cpp.at_with_gradient()


@pytest.mark.syllabus("2.12m")
def test_only_dense_cpu_tensors_are_pinned(cpp):
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        cpp.pinned(torch.device("cpu"), True)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(3, device="meta").pin_memory()


@pytest.mark.needs("gpu")
@pytest.mark.syllabus("2.12m")
def test_memory_of_the_gpu_cannot_be_pinned(cpp):
    assert cpp.pinned(torch.device("cpu"), False).is_pinned()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        cpp.pinned(torch.device("cuda"), False)


@pytest.mark.syllabus("2.12n", "2.12o")
def test_a_tensor_like_another(cpp):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True).t()
    made = {name: getattr(cpp, name)(x) for name in ("by_sizes", "by_options", "like")}
    assert {name: (tensor.dtype, tensor.stride()) for name, tensor in made.items()} == {
        "by_sizes": (torch.float32, (2, 1)),
        "by_options": (torch.float64, (2, 1)),
        "like": (torch.float64, (1, 3)),
    }
    assert all(tensor.shape == x.shape and not tensor.requires_grad for tensor in made.values())


@pytest.mark.syllabus("2.12r")
def test_the_memory_format_is_not_an_option(cpp):
    image = torch.arange(24.0).view(1, 2, 3, 4)
    assert cpp.properties(image.double()) == "Double on cpu, layout Strided, memory format Contiguous"
    last = image.to(memory_format=torch.channels_last)
    assert cpp.properties(last) == "Float (kFloat) on cpu, layout Strided, memory format ChannelsLast"
    strides = {name: getattr(cpp, name)(last).stride() for name in ("by_options", "in_its_format", "like")}
    assert strides == {"by_options": image.stride(), "in_its_format": last.stride(), "like": last.stride()}
    assert torch.equal(cpp.walk_dense(last), 2 * image)
    assert not torch.equal(cpp.walk(last), 2 * image)
