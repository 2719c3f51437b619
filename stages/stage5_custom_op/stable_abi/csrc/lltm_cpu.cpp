// The operators on a CPU: loops over rows, in parallel, and units, which compute what the threads of a CUDA kernel
// compute. at::vec is not part of the stable ABI, so each step of a loop computes one unit.
#include <algorithm>
#include <cmath>

#include "lltm_math.h"
#include "operators.h"

using torch::stable::Tensor;

// Like at::TensorAccessor and Tensor::accessor(), which a stable Tensor does not have.
template <typename scalar_t, size_t dimensions>
using Accessor = torch::headeronly::HeaderOnlyTensorAccessor<scalar_t, dimensions>;

template <typename scalar_t, size_t dimensions>
Accessor<scalar_t, dimensions> accessor(const Tensor& tensor) {
  return {data<scalar_t>(tensor), tensor.sizes().data(), tensor.strides().data()};
}

// A thread gets at least one row, and about 2048 units.
int64_t rows_per_thread(int64_t state_size) {
  return std::max<int64_t>(1, 2048 / std::max<int64_t>(1, state_size));
}

template <typename scalar_t>
void forward_rows(Accessor<scalar_t, 2> new_h,             // [B,S]
                  Accessor<scalar_t, 2> new_cell,          // [B,S]
                  Accessor<scalar_t, 3> gates,             // [B,3,S]: input, output, candidate
                  Accessor<const scalar_t, 3> z,           // [B,3,S], same order
                  Accessor<const scalar_t, 2> old_cell) {  // [B,S], any strides
  using math_t = math_type<scalar_t>;
  const int64_t B = old_cell.size(0), S = old_cell.size(1);
  torch::stable::parallel_for(0, B, rows_per_thread(S), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t unit = 0; unit < S; ++unit) {
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
  });
}

template <typename scalar_t>
void backward_rows(Accessor<scalar_t, 3> d_z,               // [B,3,S]: input, output, candidate
                   Accessor<scalar_t, 2> d_old_cell,        // [B,S]
                   Accessor<const scalar_t, 2> grad_h,      // [B,S], any strides, even zero
                   Accessor<const scalar_t, 2> grad_cell,   // [B,S], the same
                   Accessor<const scalar_t, 3> gates,       // [B,3,S]
                   Accessor<const scalar_t, 2> new_cell) {  // [B,S]
  using math_t = math_type<scalar_t>;
  const int64_t B = new_cell.size(0), S = new_cell.size(1);
  torch::stable::parallel_for(0, B, rows_per_thread(S), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t unit = 0; unit < S; ++unit) {
        const math_t input_gate = gates[row][0][unit];
        const math_t output_gate = gates[row][1][unit];
        const math_t candidate_cell = gates[row][2][unit];
        const math_t tanh_new_cell = std::tanh(math_t(new_cell[row][unit]));
        const math_t d_new_h = grad_h[row][unit];

        const math_t d_new_cell =
            math_t(grad_cell[row][unit]) + d_new_h * output_gate * d_tanh(tanh_new_cell);
        d_old_cell[row][unit] = d_new_cell;
        d_z[row][0][unit] = d_new_cell * candidate_cell * d_sigmoid(input_gate);
        d_z[row][1][unit] = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
        d_z[row][2][unit] = d_new_cell * input_gate * d_elu(candidate_cell);
      }
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> pointwise(const Tensor& z,           // [B,3S]
                                             const Tensor& old_cell) {  // [B,S]
  check_forward(z, old_cell);
  const int64_t B = old_cell.size(0), S = old_cell.size(1);
  Tensor new_h = torch::stable::new_empty(z, {B, S});
  Tensor new_cell = torch::stable::new_empty(z, {B, S});
  Tensor gates = torch::stable::new_empty(z, {B, 3, S});
  const Tensor z_of_gates = torch::stable::view(z, {B, 3, S});  // [B,3,S]
  DISPATCH_FLOATING_TYPES(z.scalar_type(), "lltm_forward", [&] {
    forward_rows<scalar_t>(accessor<scalar_t, 2>(new_h), accessor<scalar_t, 2>(new_cell),
                           accessor<scalar_t, 3>(gates), accessor<const scalar_t, 3>(z_of_gates),
                           accessor<const scalar_t, 2>(old_cell));
  });
  return {new_h, new_cell, gates};
}

std::tuple<Tensor, Tensor> pointwise_backward(const std::optional<Tensor>& grad_h,     // [B,S]
                                              const std::optional<Tensor>& grad_cell,  // [B,S]
                                              const Tensor& gates,                     // [B,3,S]
                                              const Tensor& new_cell) {                // [B,S]
  check_backward(grad_h, grad_cell, gates, new_cell);
  const int64_t B = new_cell.size(0), S = new_cell.size(1);
  Tensor d_z = torch::stable::new_empty(gates, {B, 3, S});
  Tensor d_old_cell = torch::stable::new_empty(gates, {B, S});
  const Tensor d_new_h = or_zero(grad_h, new_cell), d_cell = or_zero(grad_cell, new_cell);
  DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_backward", [&] {
    backward_rows<scalar_t>(accessor<scalar_t, 3>(d_z), accessor<scalar_t, 2>(d_old_cell),
                            accessor<const scalar_t, 2>(d_new_h), accessor<const scalar_t, 2>(d_cell),
                            accessor<const scalar_t, 3>(gates), accessor<const scalar_t, 2>(new_cell));
  });
  return {torch::stable::flatten(d_z, 1), d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CPU, m) {
  m.impl("pointwise", TORCH_BOX(&pointwise));
  m.impl("pointwise_backward", TORCH_BOX(&pointwise_backward));
}
