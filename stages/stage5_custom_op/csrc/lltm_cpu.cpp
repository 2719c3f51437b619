// The operators on a CPU: allocation of the outputs, choice of the loops, and registration.
#include <ATen/Version.h>
#include <ATen/ops/empty.h>

#include <string>

#include "operators.h"

#define CPU_CAPABILITY DEFAULT
#include "lltm_rows.h"

using at::Tensor;

// The same loops for other kinds of CPUs, in lltm_avx2.cpp and lltm_avx512.cpp.
namespace AVX2 {
decltype(DEFAULT::forward) forward;
decltype(DEFAULT::backward) backward;
}  // namespace AVX2
namespace AVX512 {
decltype(DEFAULT::forward) forward;
decltype(DEFAULT::backward) backward;
}  // namespace AVX512

namespace {

// The loops for this CPU, or for a simpler one if the variable ATEN_CPU_CAPABILITY says so, as for torch's kernels.
template <typename Function>
Function* choose(Function* any_cpu, Function* avx2, Function* avx512) {
  static const std::string capability = at::get_cpu_capability();
  return capability == "AVX512" ? avx512 : capability == "AVX2" ? avx2 : any_cpu;
}

}  // namespace

// The same numbers with contiguous units in each row, as most tensors have. Rows may have any stride.
Tensor in_rows(const Tensor& tensor) {
  return tensor.stride(1) == 1 || tensor.size(1) < 2 ? tensor : tensor.contiguous();
}

std::tuple<Tensor, Tensor, Tensor> pointwise(const Tensor& z,           // [B,3S]
                                             const Tensor& old_cell) {  // [B,S]
  check_forward(z, old_cell);
  const int64_t B = old_cell.size(0), S = old_cell.size(1);
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  Tensor gates = at::empty({B, 3, S}, z.options());
  const auto forward = choose(DEFAULT::forward, AVX2::forward, AVX512::forward);
  forward(new_h, new_cell, gates, in_rows(z), in_rows(old_cell));
  return {new_h, new_cell, gates};
}

std::tuple<Tensor, Tensor> pointwise_backward(const std::optional<Tensor>& grad_h,     // [B,S]
                                              const std::optional<Tensor>& grad_cell,  // [B,S]
                                              const Tensor& gates,                     // [B,3,S]
                                              const Tensor& new_cell) {                // [B,S]
  check_backward(grad_h, grad_cell, gates, new_cell);
  const int64_t B = new_cell.size(0), S = new_cell.size(1);
  Tensor d_z = at::empty({B, 3 * S}, gates.options());
  Tensor d_old_cell = at::empty({B, S}, gates.options());
  const auto backward = choose(DEFAULT::backward, AVX2::backward, AVX512::backward);
  backward(d_z, d_old_cell, in_rows(or_zero(grad_h, new_cell)), in_rows(or_zero(grad_cell, new_cell)),
           gates.contiguous(), in_rows(new_cell));
  return {d_z, d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CPU, m) {
  m.impl("pointwise", &pointwise);
  m.impl("pointwise_backward", &pointwise_backward);
}
