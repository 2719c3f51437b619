// The pointwise part on a GPU: outputs, launches, and their registration.
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <c10/cuda/CUDAGuard.h>

#include "operators.h"

using at::Tensor;

// Defined in lltm_kernel.cu. A tensor that is not defined is a gradient that never came, or one that nobody
// needs.
void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& z, const Tensor& old_cell);
void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& sums, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& z, const Tensor& new_cell);
int64_t rows_of_sums(int64_t batch_size, int64_t state_size, size_t element_size);

std::tuple<Tensor, Tensor> pointwise_cuda(const Tensor& z,           // [B,3S]
                                          const Tensor& old_cell) {  // [B,S]
  check_pointwise(z, old_cell);
  const c10::cuda::CUDAGuard guard(z.device());
  const int64_t B = old_cell.size(0), S = old_cell.size(1);

  // Every element will be written, so nothing needs to be zeroed.
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  launch_forward(new_h, new_cell, z.contiguous(), old_cell);
  return {new_h, new_cell};
}

// needs: of d_bias and d_old_cell.
std::tuple<Tensor, Tensor, Tensor> pointwise_backward_cuda(const std::optional<Tensor>& grad_h,     // [B,S]
                                                           const std::optional<Tensor>& grad_cell,  // [B,S]
                                                           const Tensor& z,                         // [B,3S]
                                                           const Tensor& new_cell,                  // [B,S]
                                                           std::array<bool, 2> needs) {
  check_pointwise_backward(grad_h, grad_cell, z, new_cell);
  const c10::cuda::CUDAGuard guard(z.device());
  const int64_t B = new_cell.size(0), S = new_cell.size(1);
  const auto [needs_bias, needs_old_cell] = needs;

  Tensor d_z = at::empty({B, 3 * S}, z.options());
  Tensor d_old_cell, sums;
  if (needs_old_cell) d_old_cell = at::empty({B, S}, z.options());
  if (needs_bias) {
    const at::ScalarType math = at::toOpMathType(z.scalar_type());
    sums = at::empty({rows_of_sums(B, S, z.element_size()), 3 * S}, z.options().dtype(math));
  }
  launch_backward(d_z, d_old_cell, sums, grad_h.value_or(Tensor()), grad_cell.value_or(Tensor()),
                  z.contiguous(), new_cell);
  return {d_z, needs_bias ? sums.sum(0).to(z.scalar_type()) : Tensor(), d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CUDA, m) {
  m.impl("pointwise", &pointwise_cuda);
  m.impl("pointwise_backward", &pointwise_backward_cuda);
}
