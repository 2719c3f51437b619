// The cells as policies: all that the sequence kernels know of a cell.
//
// kGates: the rows of the recurrent weights that belong to one unit. kSaved: the numbers that forward saves
// for backward, for each unit. For each unit, in this order:
//   pre_activations  z from the input part x and the recurrent part r of each gate
//   forward          the new h from z, the old h and the cell, which becomes the new one
//   backward         d_z from the gradient of the new h; d_cell is the gradient of the new cell and becomes
//                    that of the old one. Returns the gradient that reaches the old h directly, not through
//                    the product.
// recurrent(gate): which d_z is the gradient of the gate's recurrent part. That of its input part is
// d_z[gate], for every gate.
#pragma once

#include "gate_math.h"

// z: input gate, output gate, candidate cell.
struct Lltm {
  static constexpr int kGates = 3, kSaved = 3;
  static constexpr bool kHasCell = true;
  __host__ __device__ static constexpr int recurrent(int gate) { return gate; }

  template <typename math_t>
  __host__ __device__ __forceinline__ static void pre_activations(math_t (&z)[kSaved],
                                                                  const math_t (&x)[kGates],
                                                                  const math_t (&r)[kGates]) {
    for (int gate = 0; gate < kGates; ++gate) z[gate] = x[gate] + r[gate];
  }

  template <typename math_t>
  __host__ __device__ __forceinline__ static math_t forward(const math_t (&z)[kSaved], math_t /*old_h*/,
                                                            math_t& cell) {
    cell += elu(z[2]) * sigmoid(z[0]);
    return gate_tanh(cell) * sigmoid(z[1]);
  }

  template <typename math_t>
  __host__ __device__ __forceinline__ static math_t backward(math_t (&d_z)[kSaved], const math_t (&z)[kSaved],
                                                             math_t /*old_h*/, math_t /*old_cell*/,
                                                             math_t new_cell, math_t d_h, math_t& d_cell) {
    const math_t input_gate = sigmoid(z[0]), output_gate = sigmoid(z[1]), candidate = elu(z[2]);
    const math_t squashed = gate_tanh(new_cell);
    d_cell += d_h * output_gate * d_tanh(squashed);
    d_z[0] = d_cell * candidate * d_sigmoid(input_gate);
    d_z[1] = d_h * squashed * d_sigmoid(output_gate);
    d_z[2] = d_cell * input_gate * d_elu(candidate);
    return 0;
  }
};

// z: input gate, forget gate, candidate cell, output gate, as in torch.nn.LSTM.
struct Lstm {
  static constexpr int kGates = 4, kSaved = 4;
  static constexpr bool kHasCell = true;
  __host__ __device__ static constexpr int recurrent(int gate) { return gate; }

  template <typename math_t>
  __host__ __device__ __forceinline__ static void pre_activations(math_t (&z)[kSaved],
                                                                  const math_t (&x)[kGates],
                                                                  const math_t (&r)[kGates]) {
    for (int gate = 0; gate < kGates; ++gate) z[gate] = x[gate] + r[gate];
  }

  template <typename math_t>
  __host__ __device__ __forceinline__ static math_t forward(const math_t (&z)[kSaved], math_t /*old_h*/,
                                                            math_t& cell) {
    cell = sigmoid(z[1]) * cell + sigmoid(z[0]) * gate_tanh(z[2]);
    return gate_tanh(cell) * sigmoid(z[3]);
  }

  template <typename math_t>
  __host__ __device__ __forceinline__ static math_t backward(math_t (&d_z)[kSaved], const math_t (&z)[kSaved],
                                                             math_t /*old_h*/, math_t old_cell,
                                                             math_t new_cell, math_t d_h, math_t& d_cell) {
    const math_t input_gate = sigmoid(z[0]), forget_gate = sigmoid(z[1]);
    const math_t candidate = gate_tanh(z[2]), output_gate = sigmoid(z[3]), squashed = gate_tanh(new_cell);
    const math_t d_new_cell = d_cell + d_h * output_gate * d_tanh(squashed);
    d_z[0] = d_new_cell * candidate * d_sigmoid(input_gate);
    d_z[1] = d_new_cell * old_cell * d_sigmoid(forget_gate);
    d_z[2] = d_new_cell * input_gate * d_tanh(candidate);
    d_z[3] = d_h * squashed * d_sigmoid(output_gate);
    d_cell = d_new_cell * forget_gate;
    return 0;
  }
};

// z: reset gate, update gate, and the input and the recurrent part of the candidate, as in torch.nn.GRU. The
// reset gate multiplies the recurrent part, so both parts are saved. There is no cell besides h.
struct Gru {
  static constexpr int kGates = 3, kSaved = 4;
  static constexpr bool kHasCell = false;
  __host__ __device__ static constexpr int recurrent(int gate) { return gate == 2 ? 3 : gate; }

  template <typename math_t>
  __host__ __device__ __forceinline__ static void pre_activations(math_t (&z)[kSaved],
                                                                  const math_t (&x)[kGates],
                                                                  const math_t (&r)[kGates]) {
    z[0] = x[0] + r[0];
    z[1] = x[1] + r[1];
    z[2] = x[2];
    z[3] = r[2];
  }

  template <typename math_t>
  __host__ __device__ __forceinline__ static math_t forward(const math_t (&z)[kSaved], math_t old_h,
                                                            math_t& /*cell*/) {
    const math_t candidate = gate_tanh(z[2] + sigmoid(z[0]) * z[3]);
    return candidate + sigmoid(z[1]) * (old_h - candidate);
  }

  template <typename math_t>
  __host__ __device__ __forceinline__ static math_t backward(math_t (&d_z)[kSaved], const math_t (&z)[kSaved],
                                                             math_t old_h, math_t /*old_cell*/,
                                                             math_t /*new_cell*/, math_t d_h,
                                                             math_t& /*d_cell*/) {
    const math_t reset = sigmoid(z[0]), update = sigmoid(z[1]), candidate = gate_tanh(z[2] + reset * z[3]);
    d_z[2] = d_h * (1 - update) * d_tanh(candidate);
    d_z[3] = d_z[2] * reset;
    d_z[0] = d_z[2] * z[3] * d_sigmoid(reset);
    d_z[1] = d_h * (old_h - candidate) * d_sigmoid(update);
    return d_h * update;
  }
};

enum class CellKind { kLltm, kLstm, kGru };

// Calls function(Lltm()), function(Lstm()) or function(Gru()).
template <typename Function>
auto with_cell(CellKind cell, const Function& function) {
  if (cell == CellKind::kLltm) return function(Lltm());
  if (cell == CellKind::kLstm) return function(Lstm());
  return function(Gru());
}
