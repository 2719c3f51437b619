// The operators on a CPU: loops over rows and units that compute what the threads of a CUDA kernel compute.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/TensorAccessor.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "lltm_math.h"
#include "operators.h"

using at::Tensor;

template <typename scalar_t>
void forward_rows(at::TensorAccessor<scalar_t, 2> new_h,             // [B,S]
                  at::TensorAccessor<scalar_t, 2> new_cell,          // [B,S]
                  at::TensorAccessor<scalar_t, 3> gates,             // [B,3,S]: input, output, candidate
                  at::TensorAccessor<const scalar_t, 3> z,           // [B,3,S], same order
                  at::TensorAccessor<const scalar_t, 2> old_cell) {  // [B,S], any strides
  using math_t = at::opmath_type<scalar_t>;
  for (int64_t row = 0; row < old_cell.size(0); ++row) {
    for (int64_t unit = 0; unit < old_cell.size(1); ++unit) {
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
}

template <typename scalar_t>
void backward_rows(at::TensorAccessor<scalar_t, 3> d_z,               // [B,3,S]: input, output, candidate
                   at::TensorAccessor<scalar_t, 2> d_old_cell,        // [B,S]
                   at::TensorAccessor<const scalar_t, 2> grad_h,      // [B,S], any strides, even zero
                   at::TensorAccessor<const scalar_t, 2> grad_cell,   // [B,S], the same
                   at::TensorAccessor<const scalar_t, 3> gates,       // [B,3,S]
                   at::TensorAccessor<const scalar_t, 2> new_cell) {  // [B,S]
  using math_t = at::opmath_type<scalar_t>;
  for (int64_t row = 0; row < new_cell.size(0); ++row) {
    for (int64_t unit = 0; unit < new_cell.size(1); ++unit) {
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
}

std::tuple<Tensor, Tensor, Tensor> pointwise(const Tensor& z,           // [B,3S]
                                             const Tensor& old_cell) {  // [B,S]
  check_forward(z, old_cell);
  const int64_t B = old_cell.size(0), S = old_cell.size(1);
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  Tensor gates = at::empty({B, 3, S}, z.options());
  const Tensor z_of_gates = z.unflatten(1, {3, S});  // [B,3,S]
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z.scalar_type(), "lltm_forward", [&] {
    forward_rows<scalar_t>(new_h.accessor<scalar_t, 2>(), new_cell.accessor<scalar_t, 2>(),
                           gates.accessor<scalar_t, 3>(), z_of_gates.accessor<const scalar_t, 3>(),
                           old_cell.accessor<const scalar_t, 2>());
  });
  return {new_h, new_cell, gates};
}

std::tuple<Tensor, Tensor> pointwise_backward(const std::optional<Tensor>& grad_h,     // [B,S]
                                              const std::optional<Tensor>& grad_cell,  // [B,S]
                                              const Tensor& gates,                     // [B,3,S]
                                              const Tensor& new_cell) {                // [B,S]
  check_backward(grad_h, grad_cell, gates, new_cell);
  const int64_t B = new_cell.size(0), S = new_cell.size(1);
  Tensor d_z = at::empty({B, 3, S}, gates.options());
  Tensor d_old_cell = at::empty({B, S}, gates.options());
  const Tensor d_new_h = or_zero(grad_h, new_cell), d_cell = or_zero(grad_cell, new_cell);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_backward", [&] {
    backward_rows<scalar_t>(d_z.accessor<scalar_t, 3>(), d_old_cell.accessor<scalar_t, 2>(),
                            d_new_h.accessor<const scalar_t, 2>(), d_cell.accessor<const scalar_t, 2>(),
                            gates.accessor<const scalar_t, 3>(), new_cell.accessor<const scalar_t, 2>());
  });
  return {d_z.flatten(1), d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CPU, m) {
  m.impl("pointwise", &pointwise);
  m.impl("pointwise_backward", &pointwise_backward);
}
