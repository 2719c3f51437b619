// The operators on a GPU: allocation of the outputs, launches, and registration.
#include "operators.h"

using torch::stable::Tensor;

// Defined in lltm_kernel.cu. Gates and their gradients are passed as (B, 3, S).
void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& gates, const Tensor& z,
                    const Tensor& old_cell);
void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& gates, const Tensor& new_cell);

std::tuple<Tensor, Tensor, Tensor> pointwise_cuda(const Tensor& z,           // [B,3S]
                                                  const Tensor& old_cell) {  // [B,S]
  check_forward(z, old_cell);
  const torch::stable::accelerator::DeviceGuard guard(z.get_device_index());
  const int64_t B = old_cell.size(0), S = old_cell.size(1);

  // The kernel writes every element, so nothing needs to be zeroed.
  Tensor new_h = torch::stable::new_empty(z, {B, S});
  Tensor new_cell = torch::stable::new_empty(z, {B, S});
  Tensor gates = torch::stable::new_empty(z, {B, 3, S});
  launch_forward(new_h, new_cell, gates, torch::stable::view(z, {B, 3, S}), old_cell);
  return {new_h, new_cell, gates};
}

std::tuple<Tensor, Tensor> pointwise_backward_cuda(const std::optional<Tensor>& grad_h,     // [B,S]
                                                   const std::optional<Tensor>& grad_cell,  // [B,S]
                                                   const Tensor& gates,                     // [B,3,S]
                                                   const Tensor& new_cell) {                // [B,S]
  check_backward(grad_h, grad_cell, gates, new_cell);
  const torch::stable::accelerator::DeviceGuard guard(gates.get_device_index());
  const int64_t B = new_cell.size(0), S = new_cell.size(1);

  Tensor d_z = torch::stable::new_empty(gates, {B, 3 * S});
  Tensor d_old_cell = torch::stable::new_empty(gates, {B, S});
  launch_backward(torch::stable::view(d_z, {B, 3, S}), d_old_cell, or_zero(grad_h, new_cell),
                  or_zero(grad_cell, new_cell), gates, new_cell);
  return {d_z, d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CUDA, m) {
  m.impl("pointwise", TORCH_BOX(&pointwise_cuda));
  m.impl("pointwise_backward", TORCH_BOX(&pointwise_backward_cuda));
}
