// The operators: their schemas, and for CPU tensors a loop over the elements, which torch's threads share.
#include "softsign.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

using at::Tensor;

TORCH_LIBRARY(softsign, m) {
  m.def("forward(Tensor x) -> Tensor");
  m.def("backward(Tensor grad_y, Tensor x) -> Tensor");
}

void check_gradient(const Tensor& grad_y, const Tensor& x) {
  TORCH_CHECK(grad_y.sizes() == x.sizes(), "softsign: grad_y has shape ", grad_y.sizes(), ", but x has ",
              x.sizes());
  TORCH_CHECK(grad_y.scalar_type() == x.scalar_type() && grad_y.device() == x.device(),
              "softsign: grad_y is ", grad_y.scalar_type(), " on ", grad_y.device(), ", but x is ",
              x.scalar_type(), " on ", x.device());
}

constexpr int64_t kElementsPerThread = 8192;  // at least: fewer are faster than another thread starts

template <typename scalar_t>
void forward_loop(scalar_t* y, const scalar_t* x, int64_t n) {
  using math_t = at::opmath_type<scalar_t>;  // float for half and bfloat16
  at::parallel_for(0, n, kElementsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = softsign<math_t>(x[i]);
  });
}

template <typename scalar_t>
void backward_loop(scalar_t* grad_x, const scalar_t* grad_y, const scalar_t* x, int64_t n) {
  using math_t = at::opmath_type<scalar_t>;
  at::parallel_for(0, n, kElementsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) grad_x[i] = math_t(grad_y[i]) * d_softsign<math_t>(x[i]);
  });
}

Tensor forward_cpu(const Tensor& input) {
  const Tensor x = input.contiguous();
  Tensor y = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "softsign", [&] {
    forward_loop(y.mutable_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), x.numel());
  });
  return y;
}

Tensor backward_cpu(const Tensor& grad_output, const Tensor& input) {
  check_gradient(grad_output, input);
  const Tensor grad_y = grad_output.contiguous(), x = input.contiguous();
  Tensor grad_x = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "softsign_backward", [&] {
    backward_loop(grad_x.mutable_data_ptr<scalar_t>(), grad_y.const_data_ptr<scalar_t>(),
                  x.const_data_ptr<scalar_t>(), x.numel());
  });
  return grad_x;
}

TORCH_LIBRARY_IMPL(softsign, CPU, m) {
  m.impl("forward", &forward_cpu);
  m.impl("backward", &backward_cpu);
}
