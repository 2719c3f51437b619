"""The emulator's reports on wrong kernels in an extension: the tensor, the index, the line and the threads."""

from __future__ import annotations

import re

import pytest

from support.kernel_stage import speaker

pytestmark = pytest.mark.needs("g++", "setuptools")

# One wrong kernel for each name. The report must contain the text of the comment, and the comment's line.
KERNELS = r"""#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <cuda_runtime.h>
using at::Tensor;
using Row = at::PackedTensorAccessor64<float, 2, at::RestrictPtrTraits>;

__global__ void twice(float* out, const float* x, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = 2 * x[i];
}
__global__ void no_guard(float* out, const float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = i < 21 ? x[i] : 0;
  out[i] = value;  // no_guard: writes past the end of out; element [3, 0] of out, a tensor of shape (3, 7), float
}
__global__ void in_front(float* out, const float* x) {
  out[threadIdx.x] = x[int(threadIdx.x) - 1];  // in_front: reads before the beginning of x; element [-1, 6] of x
}
__global__ void change_input(float* out, const float* x) {
  const_cast<float*>(x)[threadIdx.x] = 0;  // change_input: writes x, which was passed to the kernel as const data
}
__global__ void accumulate(float* out, const float* x) {
  out[threadIdx.x] += x[threadIdx.x];  // accumulate: out
}
__global__ void neighbours(float* out, const float* x) {
  out[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 6) out[threadIdx.x] += out[threadIdx.x + 1];  // neighbours: out
}
__global__ void wrong_column(Row out, Row x) {
  out[threadIdx.y][threadIdx.x] = x[threadIdx.y][threadIdx.x + 1];  // wrong_column: index 7 is out of range
}
__global__ void vectors(float* out, const float* x) {
  float4* four = reinterpret_cast<float4*>(out + 1);
  four[threadIdx.x] = make_float4(0, 0, 0, 0);  // vectors: writes 16 bytes of out at a misaligned address
}
__global__ void rows_overlap(float* gates, int state) {
  const int at = blockIdx.y * state + threadIdx.x;  // for blockIdx.y * 2 * state
  gates[at] = 10 * blockIdx.y;  // rows_overlap: race on element [; they overlap from element [0, 2] to element [0, 5]
  gates[at + state] = 10 * blockIdx.y + 1;  // rows_overlap: check the index and its guard in both lines
}
__global__ void overrun(float* gates, float* new_cell) {
  new_cell[threadIdx.x % 40] = 1;
  gates[threadIdx.x] = 1;  // overrun: writes past the end of gates; element 40 of gates
}
const float* left_behind(const Tensor& x) {
  const Tensor copy = x.clone();
  return copy.const_data_ptr<float>();
}

void run(const std::string& name, const Tensor& x, const Tensor& out) {
  float* to = out.mutable_data_ptr<float>();
  const float* from = x.const_data_ptr<float>();
  const int count = int(x.numel());
  if (name == "right") twice<<<1, 32>>>(to, from, count);
  if (name == "no_guard") no_guard<<<1, 32>>>(to, from);
  if (name == "in_front") in_front<<<1, 7>>>(to, from);
  if (name == "change_input") change_input<<<1, 7>>>(to, from);
  if (name == "vectors") vectors<<<1, 2>>>(to, from);
  if (name == "after_free") twice<<<1, 32>>>(to, left_behind(x), count);
  if (name == "slice") twice<<<1, 32>>>(to, from, count);
  if (name == "accumulate") {
    const Tensor fresh = at::empty_like(out);
    accumulate<<<1, 7>>>(fresh.mutable_data_ptr<float>(), from);
  }
  if (name == "rows_overlap") rows_overlap<<<dim3(1, 3), 2>>>(to, 2);
  if (name == "overrun") {
    std::vector<float> memory(200);
    const Tensor gates = at::from_blob(memory.data(), {40}), new_cell = at::from_blob(memory.data() + 80, {40});
    overrun<<<1, 75>>>(gates.mutable_data_ptr<float>(), new_cell.mutable_data_ptr<float>());
  }
  if (name == "neighbours") neighbours<<<1, 7>>>(to, from);
  if (name == "wrong_column")
    wrong_column<<<1, dim3(7, 3)>>>(out.packed_accessor64<float, 2, at::RestrictPtrTraits>(),
                                    x.packed_accessor64<float, 2, at::RestrictPtrTraits>());
}
"""


@pytest.fixture(scope="module")
def say(tmp_path_factory):
    """Runs one of the kernels and returns its output."""
    return speaker(tmp_path_factory.mktemp("wrong"), KERNELS)


def said_of(name: str) -> list[tuple[int, list[str]]]:
    """The lines and texts that the comments in the kernels announce for a name."""
    lines = enumerate(KERNELS.splitlines(), 1)
    found = ((line, re.search(rf"// {name}: (.*)", text)) for line, text in lines)
    return [(line, match.group(1).split("; ")) for line, match in found if match]


def test_a_right_kernel_is_silent(say):
    assert say("right") == "nothing raised 420.0\n"


@pytest.mark.parametrize("name", dict.fromkeys(re.findall(r"// (\w+): ", KERNELS)))
def test_says_what_where_and_who(say, name):
    report = say(name)
    for line, words in said_of(name):
        assert f"csrc/wrong_kernel.cu:{line}" in report
        for word in words:
            assert word in report
    assert f"kernel {name}, block (0, 0, 0), thread (" in report or "times, by" in report


def test_rows_of_a_slice_are_not_the_storage_between_them(say):
    report = say("slice")
    assert "reads outside of x" in report
    assert "a tensor of shape (3, 7), float" in report


def test_memory_of_a_temporary(say):
    report = say("after_free")
    assert "reads x after it was freed" in report


def test_each_count_and_the_first(say):
    report = say("no_guard")
    assert "11 times, by 11 threads of 1 block; first block (0, 0, 0), thread (21, 0, 0)" in report


def test_stores_that_overlap_need_an_index_and_no_fence(say):
    report = say("rows_overlap")
    assert "__" not in report


def test_an_overrun_is_of_the_array_that_its_line_accesses(say):
    assert "new_cell" not in say("overrun")


@pytest.mark.parametrize("name", ["change_input", "accumulate", "neighbours"])
def test_checks_can_be_switched_off(say, name):
    assert "nothing raised" in say(name, EMULATOR_CHECKS="none")
    check = {"change_input": "memory", "accumulate": "initialisation", "neighbours": "races"}[name]
    assert "nothing raised" in say(name, EMULATOR_CHECKS=f"-{check}")
    assert "nothing raised" not in say(name, EMULATOR_CHECKS=check)
