// The pointwise part of the LLTM cell as two CUDA kernels over packed accessors.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

#include "lltm_math.h"

using at::Tensor;

// A pointer with sizes and strides, small enough to be passed to a kernel by value.
template <typename scalar_t, int dimensions>
using Accessor = at::PackedTensorAccessor64<scalar_t, dimensions, at::RestrictPtrTraits>;

// One thread per (row, unit). Reads 4 numbers, writes 5; neighbouring threads access neighbouring units. Half
// and bfloat16 are storage types: all arithmetic is in math_t, which is float for both.
template <typename scalar_t>
__global__ void forward_kernel(Accessor<scalar_t, 2> new_h,             // [B,S]
                               Accessor<scalar_t, 2> new_cell,          // [B,S]
                               Accessor<scalar_t, 3> gates,             // [B,3,S]: input, output, candidate
                               Accessor<const scalar_t, 3> z,           // [B,3,S], same order
                               Accessor<const scalar_t, 2> old_cell) {  // [B,S], any strides
  using math_t = at::opmath_type<scalar_t>;
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= old_cell.size(1)) return;
  for (int64_t row = blockIdx.y; row < old_cell.size(0); row += gridDim.y) {
    const math_t input_gate = sigmoid<math_t>(z[row][0][unit]);
    const math_t output_gate = sigmoid<math_t>(z[row][1][unit]);
    const math_t candidate_cell = elu<math_t>(z[row][2][unit]);
    gates[row][0][unit] = input_gate;
    gates[row][1][unit] = output_gate;
    gates[row][2][unit] = candidate_cell;

    const math_t cell = math_t(old_cell[row][unit]) + candidate_cell * input_gate;
    new_cell[row][unit] = cell;
    new_h[row][unit] = std::tanh(cell) * output_gate;
  }
}

// One thread per (row, unit). Reads 6 numbers, writes 4.
template <typename scalar_t>
__global__ void backward_kernel(Accessor<scalar_t, 3> d_z,               // [B,3,S]: input, output, candidate
                                Accessor<scalar_t, 2> d_old_cell,        // [B,S]
                                Accessor<const scalar_t, 2> grad_h,      // [B,S], any strides, even zero
                                Accessor<const scalar_t, 2> grad_cell,   // [B,S], the same
                                Accessor<const scalar_t, 3> gates,       // [B,3,S]
                                Accessor<const scalar_t, 2> new_cell) {  // [B,S]
  using math_t = at::opmath_type<scalar_t>;
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= new_cell.size(1)) return;
  for (int64_t row = blockIdx.y; row < new_cell.size(0); row += gridDim.y) {
    const math_t input_gate = gates[row][0][unit];
    const math_t output_gate = gates[row][1][unit];
    const math_t candidate_cell = gates[row][2][unit];
    const math_t tanh_new_cell = std::tanh(math_t(new_cell[row][unit]));
    const math_t d_new_h = grad_h[row][unit];

    const math_t d_new_cell = math_t(grad_cell[row][unit]) + d_new_h * output_gate * d_tanh(tanh_new_cell);
    d_old_cell[row][unit] = d_new_cell;
    d_z[row][0][unit] = d_new_cell * candidate_cell * d_sigmoid(input_gate);
    d_z[row][1][unit] = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
    d_z[row][2][unit] = d_new_cell * input_gate * d_elu(candidate_cell);
  }
}

constexpr int kThreads = 256;
// The most blocks that a grid may have in y. A batch may have more rows, so the kernels loop over rows.
constexpr int64_t kMaxGridY = 65535;

dim3 grid_for(int64_t batch_size, int64_t state_size) {
  return dim3((state_size + kThreads - 1) / kThreads, std::min(batch_size, kMaxGridY));
}

void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& gates, const Tensor& z,
                    const Tensor& old_cell) {
  if (new_h.numel() == 0) return;  // an empty grid is an error
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z.scalar_type(), "lltm_forward", [&] {
    forward_kernel<scalar_t>
        <<<grid_for(new_h.size(0), new_h.size(1)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
            new_h.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>(),
            new_cell.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>(),
            gates.packed_accessor64<scalar_t, 3, at::RestrictPtrTraits>(),
            z.packed_accessor64<const scalar_t, 3, at::RestrictPtrTraits>(),
            old_cell.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& gates, const Tensor& new_cell) {
  if (d_z.numel() == 0) return;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_backward", [&] {
    backward_kernel<scalar_t>
        <<<grid_for(new_cell.size(0), new_cell.size(1)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
            d_z.packed_accessor64<scalar_t, 3, at::RestrictPtrTraits>(),
            d_old_cell.packed_accessor64<scalar_t, 2, at::RestrictPtrTraits>(),
            grad_h.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>(),
            grad_cell.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>(),
            gates.packed_accessor64<const scalar_t, 3, at::RestrictPtrTraits>(),
            new_cell.packed_accessor64<const scalar_t, 2, at::RestrictPtrTraits>());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}
