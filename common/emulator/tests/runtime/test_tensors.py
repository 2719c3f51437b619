"""Tensors on the emulator: accessors with bounds, names for all pointers to tensors, uninitialised memory."""

from __future__ import annotations

import pytest

from support.kernel_stage import speaker

pytestmark = pytest.mark.needs("g++", "setuptools")

KERNELS = r"""#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <optional>
using at::Tensor;
template <typename T, size_t n>
using Accessor = at::PackedTensorAccessor64<T, n, at::RestrictPtrTraits>;

// ---- accessors: all that torch's can do
__device__ float sum_of_row(at::TensorAccessor<const float, 1, at::RestrictPtrTraits> row) {
  float sum = 0;
  for (int64_t i = 0; i < row.size(0); i++) sum += row[i];
  return sum;
}
__global__ void sums(at::PackedTensorAccessor32<float, 1> out, const Accessor<const float, 2> x) {
  out[threadIdx.x] = sum_of_row(x[threadIdx.x]);
}
template <typename T>
__device__ void set(at::TensorAccessor<T, 1> row, T value) {
  row[2] = value;
  row.data()[row.stride(0) * 3] = value;
}
template <typename T>
__global__ void sets(at::PackedTensorAccessor64<T, 2> out, T value) {
  set(out[0], value);
  auto row = out[1];
  row[1] = *(out[0].data() + 2);
}
__global__ void transposed(Accessor<float, 2> out, int n) { out[n][2] = 1; }
struct Parameters {
  Accessor<float, 2> out;
  int n;
};
__global__ void in_structure(const Parameters p) {
  auto out = p.out;
  out[threadIdx.x][p.n] = 1;
}
void accessors(const Tensor& x, const Tensor& out) {
  Tensor s = at::zeros({3}, x.options());
  sums<<<1, 3>>>(s.packed_accessor32<float, 1>(), x.packed_accessor64<const float, 2, at::RestrictPtrTraits>());
  const auto sum = s.accessor<float, 1>();
  const auto result = out.accessor<float, 2>();
  for (int i = 0; i < 3; i++) TORCH_CHECK(sum[i] == 7 * (7 * i + 3), sum[i]);
  sets<<<1, 1>>>(out.packed_accessor64<float, 2>(), 5.f);
  TORCH_CHECK(result[0][3] == 5 && result[1][1] == 5 && result[1].sizes() == at::IntArrayRef({7}));
  auto turned = out.packed_accessor64<float, 2, at::RestrictPtrTraits>().transpose(0, 1);
  static_assert(std::is_same_v<decltype(turned), Accessor<float, 2>>);
  TORCH_CHECK(turned.size(0) == 7 && turned.stride(1) == 7 && turned.data() == out.data_ptr<float>());
  transposed<<<1, 1>>>(turned, 6);
  in_structure<<<1, 3>>>(Parameters{out.packed_accessor64<float, 2, at::RestrictPtrTraits>(), 4});
  TORCH_CHECK(result[2][6] == 1 && result[2][4] == 1);
  bool is_refused = false;
  try {
    turned.transpose(0, 2);
  } catch (const c10::IndexError&) {
    is_refused = true;
  }
  TORCH_CHECK(is_refused);
}
__global__ void negative(Accessor<float, 2> out) { out[2][int(threadIdx.x) - 1] = 1; }
__global__ void middle(Accessor<float, 3> z) { z[1][threadIdx.x][0] = 1; }
__global__ void one(Accessor<float, 1> z) { z[threadIdx.x] = 1; }

// ---- tensors, however the host spells them
struct Holder {
  Tensor kept;
  float* data_ptr() { return kept.mutable_data_ptr<float>(); }  // no tensor, but of that name
  float* own() { return this->kept.data_ptr<float>(); }
};
__global__ void past(float* out) { out[21] = 1; }
template <typename T>
T* pointer_of(const Tensor& t) {
  return t.template data_ptr<T>();
}
#define POINTER(t) (t).data_ptr<float>()
template <typename... Tensors>
void write_past_each(const Tensors&... tensors) {
  float* all[] = {tensors.template data_ptr<float>()...};
  past<<<1, 1>>>(all[1]);
}
void spellings(const std::string& name, const Tensor& out) {
  std::optional<Tensor> maybe = out;
  Holder holder{out};
  const auto pointer = [&] { return maybe->data_ptr<float>(); };
  if (name == "optional") past<<<1, 1>>>(pointer());
  if (name == "template") past<<<1, 1>>>(pointer_of<float>(out));
  if (name == "macro") past<<<1, 1>>>(POINTER(out));
  if (name == "pack") write_past_each(out.view({21}), out);
  if (name == "holder") past<<<1, 1>>>(holder.data_ptr());
  if (name == "own") past<<<1, 1>>>(holder.own());
  if (name == "void") past<<<1, 1>>>(static_cast<float*>(out.data_ptr()));
  if (name == "choice") past<<<1, 1>>>(maybe ? maybe->data_ptr<float>() : nullptr);
  if (name == "temporary") past<<<1, 1>>>(out.view({7, 3}).data_ptr<float>());
}

// ---- which view an argument means
__device__ void fill_each(float* out, int n) {
  for (int i = 0; i < n; i++) out[i] = 1;
}
__global__ void fill(float* out, int n) { fill_each(out, n); }
__global__ void fill_two(float* row, float* all) {
  fill_each(row, 7);
  fill_each(all, 21);
}
void views(const Tensor& out) {
  float* all = out.data_ptr<float>();
  for (int t = 0; t < 3; t++) {
    fill<<<1, 1>>>(out[t].data_ptr<float>(), 7);
    fill<<<1, 1>>>(all, 21);  // begins where the first row does
    fill_two<<<1, 1>>>(out[0].data_ptr<float>(), all);
  }
  const float* read = out.const_data_ptr<float>();
  fill<<<1, 1>>>(out.mutable_data_ptr<float>() + (read ? 7 : 0), 14);
}
void memory(const Tensor& x) {
  Tensor fresh = at::empty({3}, x.options()), like = at::empty_like(x), zero = at::empty({3}, x.options()).zero_();
  TORCH_CHECK(std::isnan(fresh.data_ptr<float>()[2]) && std::isnan(like.data_ptr<float>()[20]));
  TORCH_CHECK(std::isnan(x.new_empty({5}).data_ptr<float>()[4]) && zero.data_ptr<float>()[1] == 0);
  TORCH_CHECK(at::empty({0}, x.options()).numel() == 0);
}

// ---- pointers in structures
struct Window {
  float* data;
  int64_t first;
};
struct Windows {
  Window list[2];
};
__global__ void through(Window window) { window.data[window.first] = 1; }
__global__ void through_second(const float* x, Windows windows) {
  windows.list[1].data[windows.list[1].first] = x[1];
}
void structures(const std::string& name, const Tensor& x, const Tensor& out) {
  float* data = out.data_ptr<float>();
  if (name == "held") {
    std::vector<float> host(3);
    through<<<1, 1>>>({data, 20});
    through_second<<<1, 1>>>(x.data_ptr<float>(), {{{nullptr, 0}, {data, 19}}});
    through<<<1, 1>>>({host.data(), 2});  // this memory is unknown to the runtime
    TORCH_CHECK(host[2] == 1);
  }
  if (name == "held, past") through<<<1, 1>>>({data, 21});
  if (name == "held, further") through<<<1, 1>>>({data, 5000});
  if (name == "held, second") through_second<<<1, 1>>>(x.data_ptr<float>(), {{{nullptr, 0}, {data, -30}}});
  if (name == "held, far") through<<<1, 1>>>({data, int64_t(1) << 40});
  if (name == "held, null") through<<<1, 1>>>({nullptr, 3});
}

// ---- what torch's headers offer for CUDA
template <typename From, typename To>
constexpr bool is_explicit = std::is_constructible_v<To, From> && !std::is_convertible_v<From, To>;
static_assert(is_explicit<c10::BFloat16, __nv_bfloat16> && std::is_convertible_v<__nv_bfloat16, c10::BFloat16>);
static_assert(std::is_convertible_v<c10::Half, __half> && std::is_convertible_v<__half, c10::Half>);
__global__ void exchange(float* out) {  // as floats
  out[threadIdx.x] = __shfl_xor_sync(0xfffff, c10::BFloat16(threadIdx.x + .5f), 1);
}
void torch_headers(const Tensor& out) {
  exchange<<<1, 20>>>(out.data_ptr<float>());
  TORCH_CHECK(out.data_ptr<float>()[4] == 5.5f);
  using c10::cuda::CaptureStatus;
  TORCH_CHECK(c10::cuda::currentStreamCaptureStatusMayInitCtx() == CaptureStatus::None);
  TORCH_CHECK(c10::cuda::hasPrimaryContext(0) && !c10::cuda::currentStreamCaptureIdMayInitCtx());
  cudaStream_t stream;
  cudaGraph_t graph;
  C10_CUDA_CHECK(cudaStreamCreate(&stream));
  C10_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  TORCH_CHECK(c10::cuda::isStreamCapturingMayInitCtx(stream), c10::cuda::captureStatusMayInitCtx(stream));
  const std::optional<c10::cuda::CaptureId_t> id = c10::cuda::captureIdMayInitCtx(stream);
  TORCH_CHECK(id.has_value());
  C10_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  C10_CUDA_CHECK(cudaGraphDestroy(graph));
  C10_CUDA_CHECK(cudaStreamDestroy(stream));
}

void run(const std::string& name, const Tensor& x, const Tensor& out) {
  if (name == "accessors") accessors(x, out);
  const auto packed = out.packed_accessor64<float, 2, at::RestrictPtrTraits>();
  if (name == "structure") in_structure<<<1, 3>>>(Parameters{packed, 7});
  if (name == "negative") negative<<<1, 3>>>(packed);
  if (name == "transposed") transposed<<<1, 3>>>(packed.transpose(0, 1), 7);
  const Tensor z = out.view({3, 7, 1}).expand({3, 7, 4});
  if (name == "middle") middle<<<1, 8>>>(z.packed_accessor64<float, 3, at::RestrictPtrTraits>());
  const Tensor none = at::zeros({0}, x.options());
  if (name == "none") one<<<1, 1>>>(none.packed_accessor64<float, 1, at::RestrictPtrTraits>());
  spellings(name, out);
  structures(name, x, out);
  if (name == "views") views(out);
  if (name == "memory") memory(x);
  if (name == "torch's headers") torch_headers(out);
  if (name == "row") fill<<<1, 1>>>(out[1].data_ptr<float>(), 8);
}
"""


@pytest.fixture(scope="module")
def say(tmp_path_factory):
    """Runs one of the kernels and returns its output."""
    return speaker(tmp_path_factory.mktemp("tensors"), KERNELS)


@pytest.mark.parametrize("name", ["accessors", "views", "memory", "held", "torch's headers"])
def test_what_is_right_is_silent(say, name):
    assert say(name).startswith("nothing raised ")


INDICES = {
    "structure": ("index 7 is out of range for dimension 1 of out, which has size 7", "(3, 7)"),
    "negative": ("index -1 is out of range for dimension 1 of out, which has size 7", "(3, 7)"),
    "transposed": ("index 7 is out of range for dimension 0 of out, which has size 7", "(7, 3)"),
    "middle": ("index 7 is out of range for dimension 1 of z, which has size 7", "(3, 7, 4)"),
    "none": ("index 0 is out of range for a dimension, which has size 0", ""),
}


@pytest.mark.parametrize("name", INDICES)
def test_an_index_outside_of_its_dimension(say, name):
    text, shape = INDICES[name]
    report = say(name)
    assert text in report
    assert shape in report


@pytest.mark.parametrize(
    "name", ["optional", "template", "macro", "pack", "holder", "own", "void", "choice", "temporary"]
)
def test_a_tensor_is_known_however_the_host_takes_its_memory(say, name):
    report = say(name)
    assert "writes past the end of out" in report
    assert f"a tensor of shape {'(7, 3)' if name == 'temporary' else '(3, 7)'}, float" in report


def test_a_row_ends_where_the_next_begins(say):
    report = say("row")
    assert "writes outside of out" in report
    assert "a tensor of shape (7,), float" in report


HELD = {
    "past": "writes past the end of out",
    "further": "element [714, 2] of out",
    "second": "writes before the beginning of out",
    "far": "writes memory outside every tensor",
    "null": "writes through a null pointer",
}


@pytest.mark.parametrize("name", HELD)
def test_a_pointer_in_a_structure_is_known_like_any_other(say, name):
    assert HELD[name] in say(f"held, {name}")
