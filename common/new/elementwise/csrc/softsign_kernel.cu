// The operators for CUDA tensors: one thread for each element.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "softsign.h"

using at::Tensor;

template <typename scalar_t>
__global__ void forward_kernel(scalar_t* y, const scalar_t* x, int64_t n) {
  using math_t = at::opmath_type<scalar_t>;  // float for half and bfloat16
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = softsign<math_t>(x[i]);
}

template <typename scalar_t>
__global__ void backward_kernel(scalar_t* grad_x, const scalar_t* grad_y, const scalar_t* x, int64_t n) {
  using math_t = at::opmath_type<scalar_t>;
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) grad_x[i] = math_t(grad_y[i]) * d_softsign<math_t>(x[i]);
}

constexpr int kThreads = 256;

int64_t blocks_for(int64_t n) { return (n + kThreads - 1) / kThreads; }

Tensor forward_cuda(const Tensor& input) {
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor x = input.contiguous();
  Tensor y = at::empty(x.sizes(), x.options());
  const int64_t n = x.numel();
  if (n == 0) return y;  // an empty grid is an error
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "softsign", [&] {
    forward_kernel<<<blocks_for(n), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        y.mutable_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return y;
}

Tensor backward_cuda(const Tensor& grad_output, const Tensor& input) {
  check_gradient(grad_output, input);
  const c10::cuda::CUDAGuard guard(input.device());
  const Tensor grad_y = grad_output.contiguous(), x = input.contiguous();
  Tensor grad_x = at::empty(x.sizes(), x.options());
  const int64_t n = x.numel();
  if (n == 0) return grad_x;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "softsign_backward", [&] {
    backward_kernel<<<blocks_for(n), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        grad_x.mutable_data_ptr<scalar_t>(), grad_y.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(),
        n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return grad_x;
}

TORCH_LIBRARY_IMPL(softsign, CUDA, m) {
  m.impl("forward", &forward_cuda);
  m.impl("backward", &backward_cuda);
}
