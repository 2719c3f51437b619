"""What notebooks 03 and 04 say of kernels that are right, tried on the notebooks' own texts."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch.utils.cpp_extension import include_paths

from common.build.nvcc import find_nvcc
from common.emulator import INCLUDE_DIR, compiler_command, demangle
from common.inline import inline
from common.paths import ROOT
from support.labs import ACCESSORS, POINTERS, accessors, lab, launches, linear, who
from support.proofs.files import notebook_files

NAMES = ("03_cuda_pointers", "03b_kernel_in_torch", "03c_threads_together", "04_cuda_accessors")
pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof("claims of notebooks", files=notebook_files(*NAMES)),
]


def written(name: str, B: int, S: int, threads: int, blocks: int = 0) -> list:
    """What a kernel of notebook 03 writes for each element of (B, S): block x, block y, thread x."""
    result = torch.full((B, S, 3), -1)
    who(name).record(result, threads, blocks)
    return result.tolist()


# Types ------------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.4d")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_a_template_of_operators_takes_complex_numbers(dtype):
    square = inline(
        "complex_squares", POINTERS["COMPLEX_CPP"], POINTERS["COMPLEX_CU"], ["square"], target="emulator"
    ).square
    x = torch.randn(300, dtype=dtype)
    torch.testing.assert_close(square(x), x * x)
    if dtype.is_complex:
        torch.testing.assert_close(square(x.conj()), x * x)  # a kernel does not see the bit for conjugation
        torch.testing.assert_close(square(x.conj().resolve_conj()), (x * x).conj())


@pytest.mark.needs("gpu")
@pytest.mark.syllabus("3.5d")
@pytest.mark.skipif(not hasattr(torch.cuda, "_compile_kernel"), reason="torch before 2.9")
def test_a_kernel_from_python_alone_takes_any_tensor():
    twice = torch.cuda._compile_kernel(POINTERS["TWICE_CU"], "twice")

    def first(dtype: torch.dtype) -> float:
        x = torch.ones(1000, dtype=dtype, device="cuda")
        y = torch.zeros_like(x)
        twice(grid=(4, 1, 1), block=(256, 1, 1), args=[y, x, x.numel()])
        return y[0].item()

    assert first(torch.float32) == 2
    assert first(torch.float64) == 256  # the double 1.0 is the floats 0 and 1.875, which were doubled


# Threads --------------------------------------------------------------------------------------------------------

LOOP = """
#include <cstdint>
#define __global__
struct { unsigned x; } blockIdx, blockDim, threadIdx;
KERNEL
extern "C" void launch(float* out, const float* x, long count, int blocks, int threads, bool backwards) {
  blockDim.x = threads;
  for (int turn = 0; turn < blocks * threads; ++turn) {
    const int call = backwards ? blocks * threads - 1 - turn : turn;
    blockIdx.x = call / threads, threadIdx.x = call % threads;
    square_kernel(out, x, count);
  }
}
"""


@pytest.mark.syllabus("3.9a")
def test_a_launch_is_a_loop_over_threads(tmp_path):
    """The kernel's text as a plain function, called once for each thread, in two orders; and as it is launched."""
    text = POINTERS["SQUARE_CU"].replace("B * S / 64", "(B * S + 63) / 64")
    kernel = text[text.index("__global__") : text.index("void launch(")]
    (tmp_path / "loop.cpp").write_text(LOOP.replace("KERNEL", kernel))
    command = [*compiler_command(), "-shared", "-fPIC", "loop.cpp", "-o", "loop.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    launch = ctypes.CDLL(str(tmp_path / "loop.so")).launch
    x = torch.randn(3, 40)
    for backwards in (False, True):
        out = torch.full_like(x, -1)
        pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (out, x))
        launch(*pointers, ctypes.c_long(x.numel()), 2, 64, backwards)
        assert torch.equal(out, x * x)
    assert torch.equal(lab("square", text).make(x, 3, 40), x * x)


@pytest.mark.syllabus("3.3a")
def test_one_thread_for_each_element_and_the_batch_in_y():
    expected = [[[unit // 4, row, unit % 4] for unit in range(10)] for row in range(3)]
    assert written("MATRIX", 3, 10, threads=4) == expected


@pytest.mark.syllabus("3.3d", "3.9b")
@pytest.mark.parametrize(("blocks", "threads"), [(1, 1), (2, 4), (3, 32), (7, 64)])
def test_a_grid_stride_loop_covers_any_size_with_any_grid(blocks, threads):
    for count in (1, blocks * threads, 19, 1000):
        expected = [[k // threads % blocks, 0, k % threads] for k in range(count)]
        assert written("STRIDE", 1, count, threads, blocks) == [expected]


@pytest.mark.syllabus("3.3d")
def test_without_the_loop_no_more_than_the_grid_is_covered():
    x, first = torch.randn(3, 40), "blockIdx.x * int64_t(blockDim.x) + threadIdx.x;"
    once = POINTERS["SQUARE_CU"].replace("<<<B * S / 64", "<<<1")
    looped = once.replace(
        f"const int64_t k = {first}\n  if (k < count)",
        f"for (int64_t k = {first} k < count; k += gridDim.x * int64_t(blockDim.x))",
    )
    assert looped != once != POINTERS["SQUARE_CU"]
    made = lab("square", once).make(x, 3, 40).flatten()
    assert torch.equal(made[:64], x.flatten()[:64].square())
    assert made[64:].isnan().all(), "64 threads, 120 elements"
    assert torch.equal(lab("square", looped).make(x, 3, 40), x * x)


@pytest.mark.syllabus("3.9b")
def test_a_kernel_may_loop_over_a_sum():
    X, weights, bias = torch.randn(5, 33), torch.randn(130, 33), torch.randn(130)
    z = torch.empty(5, 130)
    linear().linear(z, X, weights, bias)
    torch.testing.assert_close(z, F.linear(X, weights, bias))


# Streams and devices --------------------------------------------------------------------------------------------


@pytest.mark.needs("gpu", "nvcc")
@pytest.mark.syllabus("3.6a")
def test_a_kernel_on_another_stream_races_with_torch():
    def result(add_one) -> list[float]:
        x = torch.zeros(4, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(100_000_000)  # the GPU is busy for some 50 ms
            x.fill_(41)
            add_one(x)
        torch.cuda.synchronize()
        return x.tolist()

    module = launches(target=None)
    assert result(lambda x: module.add_one(x, 256)) == [42] * 4
    assert result(module.add_one_on_default_stream) == [41] * 4, "its 1 went to the zeros, and was covered"


@pytest.mark.needs("gpu:2", "nvcc")
@pytest.mark.syllabus("3.6b")
def test_a_guard_makes_the_tensor_s_device_current():
    with torch.cuda.device(0):
        assert launches(target=None).device_inside_guard(torch.zeros(1, device="cuda:1")) == 1
        assert torch.cuda.current_device() == 0


# Accessors ------------------------------------------------------------------------------------------------------

B, S = 2, 4


def distances(gates: torch.Tensor) -> list:
    """How far each element of (B, 3, S) is from the first one in memory."""
    strides = gates.stride()
    return [
        [[row * strides[0] + gate * strides[1] + unit * strides[2] for unit in range(S)] for gate in range(3)]
        for row in range(B)
    ]


def places_of(call, gates: torch.Tensor) -> list:
    place = torch.full(gates.shape, -1)
    call(place, gates)
    return place.tolist()


@pytest.mark.syllabus("4.1a")
def test_an_accessor_finds_the_element_that_the_arithmetic_finds():
    gates = torch.zeros(B, 3 * S).view(B, 3, S)
    by_hand = [[[row * 3 * S + gate * S + unit for unit in range(S)] for gate in range(3)] for row in range(B)]
    assert places_of(accessors("places").by_hand, gates) == places_of(accessors("places").by_name, gates) == by_hand
    turned = torch.zeros(S, 3, B).permute(2, 1, 0)
    assert places_of(accessors("places").by_name, turned) == distances(turned) != by_hand
    assert places_of(accessors("places").by_hand, turned) == by_hand, "the arithmetic knows of no strides"


@pytest.mark.syllabus("4.1b")
def test_reshaped_gates_name_the_gate_by_an_index():
    flat = torch.randn(B, 3 * S)
    gates, out = flat.view(B, 3, S), torch.empty(B, S)
    assert gates.data_ptr() == flat.data_ptr()
    for k, chunk in enumerate(flat.chunk(3, dim=1)):
        accessors("bounds").gate(out, gates, k)
        assert torch.equal(out, chunk)


@pytest.mark.syllabus("4.1c")
def test_a_tensor_accessor_on_the_cpu():
    x = torch.arange(12.0).view(3, 4)
    for view in (x, x.t(), x[:, ::2], x[1:2].expand(5, 4)):
        assert accessors("sum").sum_on_cpu(view) == view.sum().item()
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        accessors("sum").sum_on_cpu(x.double())
    with pytest.raises(RuntimeError, match="expected 2 dims but tensor has 1"):
        accessors("sum").sum_on_cpu(x[0])


@pytest.mark.syllabus("4.1d")
def test_a_packed_accessor_holds_sizes_and_strides_itself():
    pointer = 8
    plain, packed_32, packed_64 = accessors("kinds").bytes()
    assert plain == 3 * pointer, "to the data, to the sizes and to the strides"
    assert accessors("kinds").refers_to_the_tensor(torch.zeros(2, 3, 4)), (
        "which are in the tensor, in memory of the host"
    )
    assert (packed_32, packed_64) == (pointer + 2 * 3 * 4, pointer + 2 * 3 * 8)


@pytest.mark.syllabus("4.2a")
def test_32_bits_reach_as_far_as_2_to_the_31():
    one = torch.zeros(1)
    most, more = one.expand(2**31 - 1), one.expand(2**31)
    assert accessors("kinds").size_by_32(most) == accessors("kinds").size_by_64(most) == 2**31 - 1
    assert accessors("kinds").size_by_64(more) == 2**31
    with pytest.raises(RuntimeError, match="packed_accessor64"):
        accessors("kinds").size_by_32(more)
    far_apart = numpy.lib.stride_tricks.as_strided(numpy.zeros(1, numpy.float32), (2,), (4 * 2**32,))
    assert accessors("kinds").stride_by_32(torch.from_numpy(far_apart)) == 0  # only the number of elements is checked


def nvcc(folder, text: str, *flags: str) -> str:
    """What nvcc prints about a source with torch's headers, compiled for sm_90 into `folder`/kernel.out."""
    (folder / "kernel.cu").write_text(text)
    command = [shutil.which("nvcc"), "-std=c++20", "-arch=sm_90", "--expt-relaxed-constexpr", "kernel.cu"]
    command += ["-o", "kernel.out", *flags, *(f"-I{path}" for path in include_paths())]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return demangle(done.stdout + done.stderr)


@pytest.mark.needs("nvcc")
@pytest.mark.syllabus("4.2a")
def test_32_bits_take_fewer_registers(tmp_path):
    said = nvcc(tmp_path, ACCESSORS["INDEX"], "-cubin", "-Xptxas", "-v")
    found = dict(re.findall(r"entry function '(?:void )?product<(\w+)>.*?Used (\d+) registers", said, re.DOTALL))
    assert int(found["int"]) < int(found["long"])


@pytest.mark.syllabus("4.2a")
@pytest.mark.parametrize("bits", [32, 64])
def test_both_kinds_of_index_compute_the_same(bits):
    products = inline("products", ACCESSORS["PRODUCT_CPP"], ACCESSORS["PRODUCT_CU"], ["product"], target="emulator")
    x = torch.rand(3, 3, 70)
    products.product(x, bits)
    assert torch.equal(x[:, 0], x[:, 1] * x[:, 2])


@pytest.mark.syllabus("4.2b")
def test_restrict_traits_are_a_restricted_pointer(tmp_path):
    source = tmp_path / "traits.cu"
    source.write_text(
        "#include <cuda_runtime.h>\n#include <ATen/core/TensorAccessor.h>\n#include <type_traits>\n"
        "template <template <typename> class Traits>\n"
        "using Pointer = decltype(std::declval<at::PackedTensorAccessor64<float, 1, Traits>>().data());\n"
        "static_assert(std::is_same_v<Pointer<at::RestrictPtrTraits>, float* __restrict__>);\n"
        "static_assert(std::is_same_v<Pointer<at::DefaultPtrTraits>, float*>);\n"
        "static_assert(!std::is_same_v<float*, float* __restrict__>);\n"
    )
    folders = [f"-I{path}" for path in (INCLUDE_DIR, *include_paths())]
    command = [*compiler_command(), "-std=c++20", "-fsyntax-only", "-x", "c++", *folders, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("nvcc")
@pytest.mark.syllabus("4.2b")
def test_the_promise_saves_nvcc_a_read(tmp_path):
    nvcc(tmp_path, ACCESSORS["PROMISE"], "-ptx")
    kernels = (tmp_path / "kernel.out").read_text().split(".entry ")[1:]
    reads = {demangle(k.partition("(")[0]).partition("(")[0]: k.count("ld.global") for k in kernels}
    assert reads["pointers"] == 2, "out may overlap x"
    assert reads["restrict_pointers"] == 1
    assert 1 <= reads["restrict_accessors"] <= reads["accessors"] == 2


# A kernel that does not end ---------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.8c")
def test_the_emulator_stops_a_kernel_that_waits_forever_and_names_the_line(tmp_path):
    (tmp_path / "waiting.cu").write_text(POINTERS["WAITING_CU"].lstrip())
    command = [sys.executable, "-m", "common.emulator", "run", "waiting.cu"]
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "EMULATOR_TIMEOUT": "3"}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode != 0
    assert "kernel wait_kernel, block (0, 0, 0), thread (0, 0, 0) has not ended after 3 seconds" in done.stderr
    assert re.search(r"in waiting\.cu:[34]\b", done.stderr), done.stderr


@pytest.mark.syllabus("3.8c")
@pytest.mark.needs("nvcc")
def test_the_driver_has_settings_for_a_file_with_the_state_of_a_gpu():
    """The settings that notebook 03c names exist; only a GPU could show what they write."""
    header = (Path(find_nvcc()).resolve().parents[1] / "include" / "cuda.h").read_text()
    for setting in ("ENABLE_USER_TRIGGER", "PIPE", "FILE", "ENABLE_ON_EXCEPTION"):
        assert f"CU_COREDUMP_{setting}" in header
