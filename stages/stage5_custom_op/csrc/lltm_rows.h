// The loops of the operators on a CPU: rows in parallel, and in each row a vector of units at a time. They compute
// what the threads of a CUDA kernel compute. lltm_cpu.cpp compiles them for any CPU, lltm_avx2.cpp and
// lltm_avx512.cpp for those with longer vectors. CPU_CAPABILITY is the namespace of what is compiled for one kind of
// CPU, here as in torch's headers.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <ATen/cpu/vec/vec.h>

#include <algorithm>

namespace CPU_CAPABILITY {

using at::Tensor;

// Half and bfloat16 are storage types: all arithmetic is in float.
template <typename scalar_t>
using Vec = at::vec::Vectorized<at::opmath_type<scalar_t>>;

// The next numbers of a row as a vector; `count` is less than its size at the end of a row.
template <typename scalar_t>
Vec<scalar_t> load(const scalar_t* from, int count) {
  return at::vec::convert<typename Vec<scalar_t>::value_type>(
      at::vec::Vectorized<scalar_t>::loadu(from, count));
}

// Rounds each number once.
template <typename scalar_t>
void store(scalar_t* to, const Vec<scalar_t>& numbers, int count) {
  at::vec::convert<scalar_t>(numbers).store(to, count);
}

// The functions of lltm_math.h for vectors.
template <typename V>
V sigmoid(const V& z) {
  return (V(1) + z.neg().exp()).reciprocal();
}

template <typename V>
V d_sigmoid(const V& s) {
  return s * (V(1) - s);
}

// By expm1, which takes less time than V::tanh(): tanh(z) = -e / (2 + e) for e = expm1(-2z) and z >= 0.
template <typename V>
V tanh(const V& z) {
  const V e = (V(-2) * z.abs()).expm1();
  return (e / (V(2) + e)).copysign(z);
}

template <typename V>
V d_tanh(const V& t) {
  return V(1) - t * t;
}

// blendv(a, b, mask): b where the mask is set, else a. Both are computed for every number.
template <typename V>
V elu(const V& z) {
  return V::blendv(z.expm1(), z, z > V(0));
}

template <typename V>
V d_elu(const V& e) {
  return V::blendv(e + V(1), V(1), e > V(0));
}

// A thread gets at least one row, and about 8192 units: fewer are faster than another thread starts.
inline int64_t rows_per_thread(int64_t state_size) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, state_size));
}

template <typename scalar_t>
void forward_row(scalar_t* new_h,           // [S]
                 scalar_t* new_cell,        // [S]
                 scalar_t* gates,           // [3,S]: input, output, candidate
                 const scalar_t* z,         // [3,S], same order
                 const scalar_t* old_cell,  // [S]
                 int64_t S) {
  using V = Vec<scalar_t>;
  for (int64_t unit = 0; unit < S; unit += V::size()) {
    const int count = std::min<int64_t>(V::size(), S - unit);
    const V input_gate = sigmoid(load(z + unit, count));
    const V output_gate = sigmoid(load(z + S + unit, count));
    const V candidate_cell = elu(load(z + 2 * S + unit, count));
    store(gates + unit, input_gate, count);
    store(gates + S + unit, output_gate, count);
    store(gates + 2 * S + unit, candidate_cell, count);

    const V cell = load(old_cell + unit, count) + candidate_cell * input_gate;
    store(new_cell + unit, cell, count);
    store(new_h + unit, tanh(cell) * output_gate, count);
  }
}

template <typename scalar_t>
void backward_row(scalar_t* d_z,              // [3,S]: input, output, candidate
                  scalar_t* d_old_cell,       // [S]
                  const scalar_t* grad_h,     // [S]
                  const scalar_t* grad_cell,  // [S]
                  const scalar_t* gates,      // [3,S]
                  const scalar_t* new_cell,   // [S]
                  int64_t S) {
  using V = Vec<scalar_t>;
  for (int64_t unit = 0; unit < S; unit += V::size()) {
    const int count = std::min<int64_t>(V::size(), S - unit);
    const V input_gate = load(gates + unit, count);
    const V output_gate = load(gates + S + unit, count);
    const V candidate_cell = load(gates + 2 * S + unit, count);
    const V tanh_new_cell = tanh(load(new_cell + unit, count));
    const V d_new_h = load(grad_h + unit, count);

    const V d_new_cell = load(grad_cell + unit, count) + d_new_h * output_gate * d_tanh(tanh_new_cell);
    store(d_old_cell + unit, d_new_cell, count);
    store(d_z + unit, d_new_cell * candidate_cell * d_sigmoid(input_gate), count);
    store(d_z + S + unit, d_new_h * tanh_new_cell * d_sigmoid(output_gate), count);
    store(d_z + 2 * S + unit, d_new_cell * input_gate * d_elu(candidate_cell), count);
  }
}

// The numbers of each row must be contiguous; rows may have any stride.
void forward(const Tensor& new_h_out,      // [B,S]
             const Tensor& new_cell_out,   // [B,S]
             const Tensor& gates_out,      // [B,3,S]
             const Tensor& z_in,           // [B,3S]
             const Tensor& old_cell_in) {  // [B,S]
  const int64_t B = old_cell_in.size(0), S = old_cell_in.size(1);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z_in.scalar_type(), "lltm_forward", [&] {
    auto new_h = new_h_out.accessor<scalar_t, 2>(), new_cell = new_cell_out.accessor<scalar_t, 2>();
    auto gates = gates_out.accessor<scalar_t, 3>();
    auto z = z_in.accessor<const scalar_t, 2>(), old_cell = old_cell_in.accessor<const scalar_t, 2>();
    at::parallel_for(0, B, rows_per_thread(S), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        forward_row<scalar_t>(new_h[row].data(), new_cell[row].data(), gates[row].data(), z[row].data(),
                              old_cell[row].data(), S);
    });
  });
}

void backward(const Tensor& d_z_out,         // [B,3S]
              const Tensor& d_old_cell_out,  // [B,S]
              const Tensor& grad_h_in,       // [B,S]
              const Tensor& grad_cell_in,    // [B,S]
              const Tensor& gates_in,        // [B,3,S]
              const Tensor& new_cell_in) {   // [B,S]
  const int64_t B = new_cell_in.size(0), S = new_cell_in.size(1);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates_in.scalar_type(), "lltm_backward", [&] {
    auto d_z = d_z_out.accessor<scalar_t, 2>(), d_old_cell = d_old_cell_out.accessor<scalar_t, 2>();
    auto grad_h = grad_h_in.accessor<const scalar_t, 2>(),
         grad_cell = grad_cell_in.accessor<const scalar_t, 2>();
    auto gates = gates_in.accessor<const scalar_t, 3>();
    auto new_cell = new_cell_in.accessor<const scalar_t, 2>();
    at::parallel_for(0, B, rows_per_thread(S), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        backward_row<scalar_t>(d_z[row].data(), d_old_cell[row].data(), grad_h[row].data(),
                               grad_cell[row].data(), gates[row].data(), new_cell[row].data(), S);
    });
  });
}

}  // namespace CPU_CAPABILITY
