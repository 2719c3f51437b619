// The operators on a GPU: allocation of the outputs, launches, and registration.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "operators.h"

using at::Tensor;

// Defined in lltm_kernel.cu. Gates and their gradients are passed as (B, 3, S).
void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& gates, const Tensor& z,
                    const Tensor& old_cell);
void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& gates, const Tensor& new_cell);

std::tuple<Tensor, Tensor, Tensor> pointwise_cuda(const Tensor& z,           // [B,3S]
                                                  const Tensor& old_cell) {  // [B,S]
  check_forward(z, old_cell);
  const c10::cuda::CUDAGuard guard(z.device());
  const int64_t B = old_cell.size(0), S = old_cell.size(1);

  // The kernel writes every element, so nothing needs to be zeroed.
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  Tensor gates = at::empty({B, 3, S}, z.options());
  launch_forward(new_h, new_cell, gates, z.unflatten(1, {3, S}), old_cell);
  return {new_h, new_cell, gates};
}

std::tuple<Tensor, Tensor> pointwise_backward_cuda(const std::optional<Tensor>& grad_h,     // [B,S]
                                                   const std::optional<Tensor>& grad_cell,  // [B,S]
                                                   const Tensor& gates,                     // [B,3,S]
                                                   const Tensor& new_cell) {                // [B,S]
  check_backward(grad_h, grad_cell, gates, new_cell);
  const c10::cuda::CUDAGuard guard(gates.device());
  const int64_t B = new_cell.size(0), S = new_cell.size(1);

  Tensor d_z = at::empty({B, 3 * S}, gates.options());
  Tensor d_old_cell = at::empty({B, S}, gates.options());
  launch_backward(d_z.unflatten(1, {3, S}), d_old_cell, or_zero(grad_h, new_cell),
                  or_zero(grad_cell, new_cell), gates, new_cell);
  return {d_z, d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CUDA, m) {
  m.impl("pointwise", &pointwise_cuda);
  m.impl("pointwise_backward", &pointwise_backward_cuda);
}
