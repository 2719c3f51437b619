// The pointwise part of one step as two kernels, a thread for each unit of each row.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "loop.h"
#include "operators.h"

using at::Tensor;

namespace {

constexpr int kThreads = 256;

// The arrays of the structs in loop.h, with the same names and shapes. Pointers to missing arrays are null.
template <typename scalar_t>
struct ForwardArrays {
  const scalar_t *x, *recurrent, *old_h;
  scalar_t *h, *cell, *cells, *z;
  const int64_t* lengths;
  int64_t time, batch_size, state_size;
};

template <typename scalar_t>
struct BackwardArrays {
  using math_t = at::opmath_type<scalar_t>;
  const scalar_t *grad_outputs, *product, *z, *old_h, *old_cell, *cell;
  math_t *d_h, *d_cell;
  scalar_t *d_z, *d_recurrent;
  const int64_t* lengths;
  int64_t time, batch_size, state_size;
};

template <typename Cell, typename scalar_t>
__global__ void forward_kernel(const ForwardArrays<scalar_t> arrays) {
  using math_t = at::opmath_type<scalar_t>;
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const int64_t S = arrays.state_size, unit_of_all = blockIdx.x * int64_t(kThreads) + threadIdx.x;
  if (unit_of_all >= arrays.batch_size * S) return;
  const int64_t row = unit_of_all / S, unit = unit_of_all % S;

  math_t x[G], recurrent[G], z[K];
  for (int gate = 0; gate < G; ++gate) {
    x[gate] = arrays.x[(row * G + gate) * S + unit];
    recurrent[gate] = arrays.recurrent[(row * G + gate) * S + unit];
  }
  Cell::pre_activations(z, x, recurrent);
  for (int k = 0; k < K; ++k) {
    const scalar_t rounded = z[k];
    z[k] = rounded;  // what backward will find
    if (arrays.z) arrays.z[(row * K + k) * S + unit] = rounded;
  }

  const scalar_t old_h = arrays.old_h[unit_of_all];
  const scalar_t old_cell = Cell::kHasCell ? arrays.cell[unit_of_all] : scalar_t(0);
  math_t cell = old_cell;
  const math_t h = Cell::forward(z, math_t(old_h), cell);
  const bool is_past = arrays.lengths && arrays.time >= arrays.lengths[row];
  arrays.h[unit_of_all] = is_past ? old_h : scalar_t(h);
  if (Cell::kHasCell) {
    const scalar_t new_cell = is_past ? old_cell : scalar_t(cell);
    arrays.cell[unit_of_all] = new_cell;
    if (arrays.cells) arrays.cells[unit_of_all] = new_cell;
  }
}

template <typename Cell, typename scalar_t>
__global__ void backward_kernel(const BackwardArrays<scalar_t> arrays) {
  using math_t = at::opmath_type<scalar_t>;
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const int64_t S = arrays.state_size, unit_of_all = blockIdx.x * int64_t(kThreads) + threadIdx.x;
  if (unit_of_all >= arrays.batch_size * S) return;
  const int64_t row = unit_of_all / S, unit = unit_of_all % S;

  math_t d_h = arrays.d_h[unit_of_all];
  if (arrays.product) d_h += math_t(arrays.product[unit_of_all]);
  if (arrays.grad_outputs) d_h += math_t(arrays.grad_outputs[unit_of_all]);
  math_t d_z[K] = {};
  if (!arrays.lengths || arrays.time < arrays.lengths[row]) {
    math_t z[K], old_cell = 0, cell = 0, d_cell = 0;
    for (int k = 0; k < K; ++k) z[k] = arrays.z[(row * K + k) * S + unit];
    if (Cell::kHasCell) {
      old_cell = arrays.old_cell[unit_of_all];
      cell = arrays.cell[unit_of_all];
      d_cell = arrays.d_cell[unit_of_all];
    }
    d_h = Cell::backward(d_z, z, math_t(arrays.old_h[unit_of_all]), old_cell, cell, d_h, d_cell);
    if (Cell::kHasCell) arrays.d_cell[unit_of_all] = d_cell;
  }
  arrays.d_h[unit_of_all] = d_h;
  for (int k = 0; k < K; ++k) arrays.d_z[(row * K + k) * S + unit] = d_z[k];
  for (int gate = 0; gate < G; ++gate)
    arrays.d_recurrent[(row * G + gate) * S + unit] = d_z[Cell::recurrent(gate)];
}

template <typename number_t>
const number_t* pointer_to(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<number_t>() : nullptr;
}

template <typename number_t>
number_t* pointer_to_out(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<number_t>() : nullptr;
}

int64_t blocks_for(const Tensor& h) { return (h.numel() + kThreads - 1) / kThreads; }

}  // namespace

void launch_step(const ForwardStep& step, std::string_view cell) {
  if (step.h.numel() == 0) return;  // an empty grid is an error
  const int64_t B = step.h.size(0), S = step.h.size(1);
  with_cell(cell, [&](auto policy) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, step.h.scalar_type(), "lltm_forward_step", [&] {
      const ForwardArrays<scalar_t> arrays = {pointer_to<scalar_t>(step.x),
                                              pointer_to<scalar_t>(step.recurrent),
                                              pointer_to<scalar_t>(step.old_h),
                                              pointer_to_out<scalar_t>(step.h),
                                              pointer_to_out<scalar_t>(step.cell),
                                              pointer_to_out<scalar_t>(step.cells),
                                              pointer_to_out<scalar_t>(step.z),
                                              pointer_to<int64_t>(step.lengths),
                                              step.time,
                                              B,
                                              S};
      forward_kernel<decltype(policy), scalar_t>
          <<<blocks_for(step.h), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(arrays);
      C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
  });
}

void launch_step(const BackwardStep& step, std::string_view cell) {
  if (step.d_h.numel() == 0) return;
  const int64_t B = step.d_h.size(0), S = step.d_h.size(1);
  with_cell(cell, [&](auto policy) {
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, step.z.scalar_type(), "lltm_backward_step", [&] {
          using math_t = at::opmath_type<scalar_t>;
          const BackwardArrays<scalar_t> arrays = {pointer_to<scalar_t>(step.grad_outputs),
                                                   pointer_to<scalar_t>(step.product),
                                                   pointer_to<scalar_t>(step.z),
                                                   pointer_to<scalar_t>(step.old_h),
                                                   pointer_to<scalar_t>(step.old_cell),
                                                   pointer_to<scalar_t>(step.cell),
                                                   pointer_to_out<math_t>(step.d_h),
                                                   pointer_to_out<math_t>(step.d_cell),
                                                   pointer_to_out<scalar_t>(step.d_z),
                                                   pointer_to_out<scalar_t>(step.d_recurrent),
                                                   pointer_to<int64_t>(step.lengths),
                                                   step.time,
                                                   B,
                                                   S};
          backward_kernel<decltype(policy), scalar_t>
              <<<blocks_for(step.d_h), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(arrays);
          C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
  });
}
