// softsign(x) = x / (1 + |x|), and its gradient.
// BEGIN SOLUTION headers
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/utils/pybind.h>
// BEGIN STARTER
// #include <torch/torch.h>
// END STARTER
// END SOLUTION

#include <cmath>

// BEGIN SOLUTION forward
at::Tensor forward(const at::Tensor& x) {
  TORCH_CHECK(x.is_cpu(), "softsign: x is on ", x.device(), ", expected a CPU tensor");
  const at::Tensor dense = x.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softsign", [&] {
    const scalar_t* from = dense.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    for (int64_t k = 0; k < x.numel(); ++k) to[k] = from[k] / (1 + std::abs(from[k]));
  });
  return y;
}
// BEGIN STARTER
// at::Tensor forward(at::Tensor x) {
//   AT_CHECK(!x.type().is_cuda(), "x must be a CPU tensor");
//   at::Tensor y = at::empty_like(x);
//   AT_DISPATCH_FLOATING_TYPES(x.type(), "softsign", [&] {
//     scalar_t* from = x.data<scalar_t>();
//     scalar_t* to = y.data<scalar_t>();
//     for (int64_t k = 0; k < x.numel(); ++k) to[k] = from[k] / (1 + std::abs(from[k]));
//   });
//   return y;
// }
// END STARTER
// END SOLUTION

// BEGIN SOLUTION backward
// The derivative is 1 / (1 + |x|)^2.
at::Tensor backward(const at::Tensor& grad, const at::Tensor& x) {
  TORCH_CHECK(grad.sizes() == x.sizes(), "softsign: grad has shape ", grad.sizes(), ", but x has ",
              x.sizes());
  const at::Tensor dense = x.contiguous(), dense_grad = grad.contiguous();
  at::Tensor d_x = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softsign_backward", [&] {
    const scalar_t* from = dense.const_data_ptr<scalar_t>();
    const scalar_t* above = dense_grad.const_data_ptr<scalar_t>();
    scalar_t* to = d_x.mutable_data_ptr<scalar_t>();
    for (int64_t k = 0; k < x.numel(); ++k) {
      const scalar_t size = 1 + std::abs(from[k]);
      to[k] = above[k] / (size * size);
    }
  });
  return d_x;
}
// BEGIN STARTER
// // The derivative is 1 / (1 + |x|)^2.
// at::Tensor backward(at::Tensor grad, at::Tensor x) {
//   AT_ASSERT(grad.sizes() == x.sizes());
//   at::Tensor d_x = at::empty_like(x);
//   AT_DISPATCH_FLOATING_TYPES(x.type(), "softsign_backward", [&] {
//     scalar_t* from = x.data<scalar_t>();
//     scalar_t* above = grad.data<scalar_t>();
//     scalar_t* to = d_x.data<scalar_t>();
//     for (int64_t k = 0; k < x.numel(); ++k) {
//       scalar_t size = 1 + std::abs(from[k]);
//       to[k] = above[k] / (size * size);
//     }
//   });
//   return d_x;
// }
// END STARTER
// END SOLUTION

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, "x / (1 + |x|)");
  m.def("backward", &backward, "The gradient of x.");
}
