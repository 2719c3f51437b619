// The operators on a GPU: the choice of kernels, and the allocation of their outputs.
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <c10/cuda/CUDAGuard.h>

#include "operators.h"

using at::Tensor;

// Defined in lltm_kernel.cu. An undefined tensor is a gradient that did not arrive or is not needed.
void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& z, const Tensor& old_cell);
void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& sums, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& z, const Tensor& new_cell);
int64_t rows_of_sums(int64_t batch_size, int64_t state_size, size_t element_size);

// Defined in lltm_small.cu.
void launch_cell(const Tensor& new_h, const Tensor& new_cell, const Tensor& z, const Tensor& input,
                 const Tensor& weights, const Tensor& bias, const Tensor& old_h, const Tensor& old_cell);
void launch_products(const Tensor& d_X, int64_t first_column, const Tensor& d_weights, const Tensor& d_z,
                     const Tensor& weights, const Tensor& old_h, const Tensor& input);

std::tuple<Tensor, Tensor> pointwise_cuda(const Tensor& z,           // [B,3S]
                                          const Tensor& old_cell) {  // [B,S]
  check_pointwise(z, old_cell);
  const c10::cuda::CUDAGuard guard(z.device());
  const int64_t B = old_cell.size(0), S = old_cell.size(1);

  // The kernel writes every element, so nothing needs to be zeroed.
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  launch_forward(new_h, new_cell, z.contiguous(), old_cell);
  return {new_h, new_cell};
}

// needs: whether d_bias and d_old_cell are needed.
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
  Tensor d_bias;
  if (needs_bias) d_bias = (sums.size(0) == 1 ? sums.view({3 * S}) : sums.sum(0)).to(z.scalar_type());
  return {d_z, d_bias, d_old_cell};
}

// Whether the cell's products take less time than the launches that torch would need for them.
bool is_small(const Tensor& input, const Tensor& old_h) {
  const int64_t B = input.size(0), I = input.size(1), S = old_h.size(1);
  return B <= 256 && B * 3 * S * (S + I) <= int64_t(1) << 25;
}

std::tuple<Tensor, Tensor, Tensor> cell_cuda(const Tensor& input,       // [B,I]
                                             const Tensor& weights,     // [3S,S+I]
                                             const Tensor& bias,        // [3S]
                                             const Tensor& old_h,       // [B,S]
                                             const Tensor& old_cell) {  // [B,S]
  check_arguments(input, weights, bias, old_h, old_cell);
  if (!is_small(input, old_h)) return cell(input, weights, bias, old_h, old_cell);
  const c10::cuda::CUDAGuard guard(input.device());
  const int64_t B = input.size(0), S = old_h.size(1);
  Tensor new_h = at::empty({B, S}, input.options());
  Tensor new_cell = at::empty({B, S}, input.options());
  Tensor z = at::empty({B, 3 * S}, input.options());
  launch_cell(new_h, new_cell, z, input, weights, bias, old_h, old_cell);
  return {new_h, new_cell, z};
}

// needs: which arguments of `cell` need a gradient. Shapes as in lltm.cpp.
std::tuple<Tensor, Tensor, Tensor, Tensor> cell_backward_cuda(const std::optional<Tensor>& grad_h,
                                                              const std::optional<Tensor>& grad_cell,
                                                              const Tensor& input, const Tensor& weights,
                                                              const Tensor& old_h, const Tensor& new_cell,
                                                              const Tensor& z, std::array<bool, 5> needs) {
  if (!grad_h && !grad_cell) return {};
  check_factors(input, weights, old_h, z);
  if (!is_small(input, old_h))
    return cell_backward(grad_h, grad_cell, input, weights, old_h, new_cell, z, needs);
  const c10::cuda::CUDAGuard guard(z.device());
  const int64_t B = input.size(0), I = input.size(1), S = old_h.size(1);
  const auto [needs_input, needs_weights, needs_bias, needs_old_h, needs_old_cell] = needs;

  const auto [d_z, d_bias, d_old_cell] =
      pointwise_backward_cuda(grad_h, grad_cell, z, new_cell, {needs_bias, needs_old_cell});
  Tensor d_X, d_weights;
  const int64_t first = needs_old_h ? 0 : S, last = needs_input ? S + I : S;
  if (needs_old_h || needs_input) d_X = at::empty({B, last - first}, z.options());
  if (needs_weights) d_weights = at::empty({3 * S, S + I}, z.options());
  if (d_X.defined() || d_weights.defined())
    launch_products(d_X, first, d_weights, d_z, weights, old_h, input);
  return {d_X, d_weights, d_bias, d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CUDA, m) {
  m.impl("cell", &cell_cuda);
  m.impl("cell_backward", &cell_backward_cuda);
  m.impl("pointwise", &pointwise_cuda);
  m.impl("pointwise_backward", &pointwise_backward_cuda);
}
