// The pointwise part on a CPU: rows in parallel, and in each row a vectorised loop over units.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <vector>

#include "lltm_math.h"
#include "lltm_simd.h"
#include "operators.h"

using at::Tensor;

// A thread gets at least one row, and about 8192 units.
int64_t rows_per_thread(int64_t state_size) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, state_size));
}

// One row. Reads 4 numbers for each unit and writes 2.
template <typename scalar_t>
ALWAYS_INLINE void forward_row(scalar_t* __restrict__ new_h,           // [S]
                               scalar_t* __restrict__ new_cell,        // [S]
                               const scalar_t* __restrict__ z,         // [3S]: input, output, candidate
                               const scalar_t* __restrict__ old_cell,  // [S]
                               int64_t S) {
  using math_t = at::opmath_type<scalar_t>;
#pragma GCC ivdep  // no two pointers overlap: __restrict__ does not cover the members of c10::Half
  for (int64_t unit = 0; unit < S; ++unit) {
    const math_t input_gate = simd::sigmoid<math_t>(z[unit]);
    const math_t output_gate = simd::sigmoid<math_t>(z[S + unit]);
    const math_t candidate_cell = simd::elu<math_t>(z[2 * S + unit]);

    const math_t cell = math_t(old_cell[unit]) + candidate_cell * input_gate;
    new_cell[unit] = cell;
    new_h[unit] = simd::tanh(cell) * output_gate;
  }
}

// One row. Reads 6 numbers for each unit and writes 4; the gates are computed again.
template <typename scalar_t>
ALWAYS_INLINE void backward_row(scalar_t* __restrict__ d_z,              // [3S]: input, output, candidate
                                scalar_t* __restrict__ d_old_cell,       // [S]
                                const scalar_t* __restrict__ grad_h,     // [S]
                                const scalar_t* __restrict__ grad_cell,  // [S]
                                const scalar_t* __restrict__ z,          // [3S]
                                const scalar_t* __restrict__ new_cell,   // [S]
                                int64_t S) {
  using math_t = at::opmath_type<scalar_t>;
#pragma GCC ivdep  // no two pointers overlap: __restrict__ does not cover the members of c10::Half
  for (int64_t unit = 0; unit < S; ++unit) {
    const math_t input_gate = simd::sigmoid<math_t>(z[unit]);
    const math_t output_gate = simd::sigmoid<math_t>(z[S + unit]);
    const math_t candidate_cell = simd::elu<math_t>(z[2 * S + unit]);
    const math_t tanh_new_cell = simd::tanh<math_t>(new_cell[unit]);
    const math_t d_new_h = grad_h[unit];

    const math_t d_new_cell = math_t(grad_cell[unit]) + d_new_h * output_gate * d_tanh(tanh_new_cell);
    d_old_cell[unit] = d_new_cell;
    d_z[unit] = d_new_cell * candidate_cell * d_sigmoid(input_gate);
    d_z[S + unit] = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
    d_z[2 * S + unit] = d_new_cell * input_gate * d_elu(candidate_cell);
  }
}

// The same numbers with contiguous units in each row, as most tensors have. Rows may have any stride.
Tensor in_rows(const Tensor& tensor) {
  return tensor.stride(1) == 1 || tensor.size(1) < 2 ? tensor : tensor.contiguous();
}

std::tuple<Tensor, Tensor> pointwise(const Tensor& z,           // [B,3S]
                                     const Tensor& old_cell) {  // [B,S]
  check_pointwise(z, old_cell);
  const int64_t B = old_cell.size(0), S = old_cell.size(1);
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  const Tensor z_rows = in_rows(z), cell_rows = in_rows(old_cell);

  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z.scalar_type(), "lltm_forward", [&] {
    scalar_t* const h_out = new_h.mutable_data_ptr<scalar_t>();
    scalar_t* const cell_out = new_cell.mutable_data_ptr<scalar_t>();
    const scalar_t* const z_in = z_rows.const_data_ptr<scalar_t>();
    const scalar_t* const cell_in = cell_rows.const_data_ptr<scalar_t>();
    const int64_t z_stride = z_rows.stride(0), cell_stride = cell_rows.stride(0);
    at::parallel_for(0, B, rows_per_thread(S), [&](int64_t begin, int64_t end) {
      simd::run([&]() __attribute__((always_inline)) {
        for (int64_t row = begin; row < end; ++row)
          forward_row(h_out + row * S, cell_out + row * S, z_in + row * z_stride, cell_in + row * cell_stride,
                      S);
      });
    });
  });
  return {new_h, new_cell};
}

// The rows of a tensor, each with contiguous units.
template <typename scalar_t>
struct Rows {
  const scalar_t* data;
  int64_t stride;
  const scalar_t* operator[](int64_t row) const { return data + row * stride; }
};

// needs: whether d_bias and d_old_cell are needed.
std::tuple<Tensor, Tensor, Tensor> pointwise_backward(const std::optional<Tensor>& grad_h,     // [B,S]
                                                      const std::optional<Tensor>& grad_cell,  // [B,S]
                                                      const Tensor& z,                         // [B,3S]
                                                      const Tensor& new_cell,                  // [B,S]
                                                      std::array<bool, 2> needs) {
  check_pointwise_backward(grad_h, grad_cell, z, new_cell);
  const bool needs_bias = needs[0], needs_old_cell = needs[1];
  const int64_t B = new_cell.size(0), S = new_cell.size(1);
  // For the bias, the rows of each part are summed while they are in the cache, and then the parts are
  // summed. The parts do not depend on the number of threads, and so neither does the result.
  const int64_t rows_of_part = std::clamp<int64_t>(rows_per_thread(S), 16, 64);
  const int64_t parts = std::max<int64_t>(1, at::divup(B, rows_of_part));

  Tensor d_z = at::empty({B, 3 * S}, z.options());
  Tensor d_old_cell, sums;
  if (needs_old_cell) d_old_cell = at::empty({B, S}, z.options());
  if (needs_bias) sums = at::empty({parts, 3 * S}, z.options().dtype(at::toOpMathType(z.scalar_type())));
  const Tensor z_rows = in_rows(z), cell_rows = in_rows(new_cell);
  const Tensor h_rows = grad_h ? in_rows(*grad_h) : Tensor(),
               grad_rows = grad_cell ? in_rows(*grad_cell) : Tensor();

  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z.scalar_type(), "lltm_backward", [&] {
    using math_t = at::opmath_type<scalar_t>;
    const std::vector<scalar_t> zero_row(grad_h && grad_cell ? 0 : S);  // every row of a missing gradient
    auto rows = [&](const Tensor& tensor) {
      return tensor.defined() ? Rows<scalar_t>{tensor.const_data_ptr<scalar_t>(), tensor.stride(0)}
                              : Rows<scalar_t>{zero_row.data(), 0};
    };
    const auto above_h = rows(h_rows), above_cell = rows(grad_rows), z_in = rows(z_rows),
               cell_in = rows(cell_rows);
    scalar_t* const z_out = d_z.mutable_data_ptr<scalar_t>();
    scalar_t* const cell_out = needs_old_cell ? d_old_cell.mutable_data_ptr<scalar_t>() : nullptr;
    math_t* const sums_out = needs_bias ? sums.mutable_data_ptr<math_t>() : nullptr;

    at::parallel_for(0, parts, at::divup(rows_per_thread(S), rows_of_part), [&](int64_t begin, int64_t end) {
      std::vector<scalar_t> unused(needs_old_cell ? 0 : S);
      simd::run([&]() __attribute__((always_inline)) {
        for (int64_t part = begin; part < end; ++part) {
          math_t* __restrict__ sum = needs_bias ? sums_out + part * 3 * S : nullptr;
          if (needs_bias) std::fill_n(sum, 3 * S, math_t(0));
          for (int64_t row = part * rows_of_part; row < std::min(B, (part + 1) * rows_of_part); ++row) {
            scalar_t* __restrict__ d_z_row = z_out + row * 3 * S;
            backward_row(d_z_row, cell_out ? cell_out + row * S : unused.data(), above_h[row],
                         above_cell[row], z_in[row], cell_in[row], S);
            if (needs_bias)
              for (int64_t k = 0; k < 3 * S; ++k) sum[k] += math_t(d_z_row[k]);
          }
        }
      });
    });
  });
  Tensor d_bias;
  if (needs_bias) d_bias = (parts == 1 ? sums.view({3 * S}) : sums.sum(0)).to(z.scalar_type());
  return {d_z, d_bias, d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CPU, m) {
  m.impl("pointwise", &pointwise);
  m.impl("pointwise_backward", &pointwise_backward);
}
