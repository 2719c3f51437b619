// The pointwise part of an LLTM with peepholes as two CUDA kernels over packed accessors.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

#include "lltm_math.h"

using at::Tensor;

template <typename scalar_t, int dimensions>
using Accessor = at::PackedTensorAccessor64<scalar_t, dimensions, at::RestrictPtrTraits>;

// One thread per (row, unit).
template <typename scalar_t>
__global__ void forward_kernel(Accessor<scalar_t, 2> new_h,             // [B,S]
                               Accessor<scalar_t, 2> new_cell,          // [B,S]
                               Accessor<scalar_t, 3> gates,             // [B,3,S]: input, output, candidate
                               Accessor<const scalar_t, 3> z,           // [B,3,S], same order
                               Accessor<const scalar_t, 2> peepholes,   // [2,S]: input gate's, output gate's
                               Accessor<const scalar_t, 2> old_cell) {  // [B,S]
  // BEGIN SOLUTION forward: write the activated gates, new_cell and new_h. grid_for, below, makes the grid.
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= old_cell.size(1)) return;
  for (int64_t row = blockIdx.y; row < old_cell.size(0); row += gridDim.y) {
    const scalar_t before = old_cell[row][unit];
    const scalar_t input_gate = sigmoid(z[row][0][unit] + peepholes[0][unit] * before);
    const scalar_t candidate_cell = elu(z[row][2][unit]);
    const scalar_t cell = before + candidate_cell * input_gate;
    const scalar_t output_gate = sigmoid(z[row][1][unit] + peepholes[1][unit] * cell);
    gates[row][0][unit] = input_gate;
    gates[row][1][unit] = output_gate;
    gates[row][2][unit] = candidate_cell;
    new_cell[row][unit] = cell;
    new_h[row][unit] = std::tanh(cell) * output_gate;
  }
  // END SOLUTION
}

template <typename scalar_t>
__global__ void backward_kernel(Accessor<scalar_t, 3> d_z,               // [B,3,S]: input, output, candidate
                                Accessor<scalar_t, 2> d_old_cell,        // [B,S]
                                Accessor<const scalar_t, 2> grad_h,      // [B,S]
                                Accessor<const scalar_t, 2> grad_cell,   // [B,S]
                                Accessor<const scalar_t, 2> peepholes,   // [2,S]: input gate's, output gate's
                                Accessor<const scalar_t, 2> old_cell,    // [B,S]
                                Accessor<const scalar_t, 3> gates,       // [B,3,S]
                                Accessor<const scalar_t, 2> new_cell) {  // [B,S]
  // BEGIN SOLUTION backward: write d_z, the gradients of the arguments of sigmoid and elu, and d_old_cell.
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= new_cell.size(1)) return;
  for (int64_t row = blockIdx.y; row < new_cell.size(0); row += gridDim.y) {
    const scalar_t input_gate = gates[row][0][unit];
    const scalar_t output_gate = gates[row][1][unit];
    const scalar_t candidate_cell = gates[row][2][unit];
    const scalar_t tanh_new_cell = std::tanh(new_cell[row][unit]);
    const scalar_t d_new_h = grad_h[row][unit];

    const scalar_t d_z_o = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
    const scalar_t d_new_cell =
        grad_cell[row][unit] + d_new_h * output_gate * d_tanh(tanh_new_cell) + d_z_o * peepholes[1][unit];
    const scalar_t d_z_i = d_new_cell * candidate_cell * d_sigmoid(input_gate);
    d_z[row][0][unit] = d_z_i;
    d_z[row][1][unit] = d_z_o;
    d_z[row][2][unit] = d_new_cell * input_gate * d_elu(candidate_cell);
    d_old_cell[row][unit] = d_new_cell + d_z_i * peepholes[0][unit];
  }
  // END SOLUTION
}

constexpr int kThreads = 128;

dim3 grid_for(int64_t batch_size, int64_t state_size) {
  return dim3((state_size + kThreads - 1) / kThreads, std::min<int64_t>(batch_size, 65535));
}

void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& gates, const Tensor& z,
                    const Tensor& peepholes, const Tensor& old_cell) {
  if (new_h.numel() == 0) return;
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "peephole_forward", [&] {
    forward_kernel<scalar_t>
        <<<grid_for(new_h.size(0), new_h.size(1)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
            new_h.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>(),
            new_cell.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>(),
            gates.packed_accessor64<scalar_t, 3, at::RestrictPtrTraits>(),
            z.packed_accessor64<const scalar_t, 3, at::RestrictPtrTraits>(),
            peepholes.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>(),
            old_cell.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& peepholes, const Tensor& old_cell,
                     const Tensor& gates, const Tensor& new_cell) {
  if (d_z.numel() == 0) return;
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "peephole_backward", [&] {
    backward_kernel<scalar_t>
        <<<grid_for(new_cell.size(0), new_cell.size(1)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
            d_z.packed_accessor64<scalar_t, 3, at::RestrictPtrTraits>(),
            d_old_cell.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>(),
            grad_h.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>(),
            grad_cell.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>(),
            peepholes.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>(),
            old_cell.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>(),
            gates.packed_accessor64<const scalar_t, 3, at::RestrictPtrTraits>(),
            new_cell.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}
