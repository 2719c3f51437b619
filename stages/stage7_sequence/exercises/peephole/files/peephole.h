// An LSTM with peepholes as a policy: the kernels know nothing else of the cell.
#pragma once

#include "gate_math.h"

// One unit. z: input gate, forget gate, candidate cell, output gate, without the peepholes' terms.
template <typename math_t>
struct PeepholeLstm {
  static constexpr int kGates = 4;

  math_t peepholes[3];  // of the input gate, the forget gate and the output gate

  // Returns the new h. cell becomes the new cell.
  __host__ __device__ math_t forward(const math_t (&z)[kGates], math_t& cell) const {
    // BEGIN SOLUTION forward: this is an LSTM without peepholes. Add them.
    const math_t input_gate = sigmoid(z[0] + peepholes[0] * cell);
    const math_t forget_gate = sigmoid(z[1] + peepholes[1] * cell);
    cell = forget_gate * cell + input_gate * std::tanh(z[2]);
    return std::tanh(cell) * sigmoid(z[3] + peepholes[2] * cell);
    // BEGIN STARTER
    // cell = sigmoid(z[1]) * cell + sigmoid(z[0]) * std::tanh(z[2]);
    // return std::tanh(cell) * sigmoid(z[3]);
    // END STARTER
    // END SOLUTION
  }

  // d_z from d_h, the gradient of the new h. d_cell is the gradient of the new cell, without the paths
  // through the new h, and becomes that of the old cell.
  __host__ __device__ void backward(math_t (&d_z)[kGates], const math_t (&z)[kGates], math_t old_cell,
                                    math_t new_cell, math_t d_h, math_t& d_cell) const {
    // BEGIN SOLUTION backward: this is an LSTM without peepholes. Add them, and the paths that they open.
    const math_t input_gate = sigmoid(z[0] + peepholes[0] * old_cell);
    const math_t forget_gate = sigmoid(z[1] + peepholes[1] * old_cell);
    const math_t candidate = std::tanh(z[2]), squashed = std::tanh(new_cell);
    const math_t output_gate = sigmoid(z[3] + peepholes[2] * new_cell);
    d_z[3] = d_h * squashed * d_sigmoid(output_gate);
    const math_t d_new_cell = d_cell + d_h * output_gate * d_tanh(squashed) + d_z[3] * peepholes[2];
    d_z[0] = d_new_cell * candidate * d_sigmoid(input_gate);
    d_z[1] = d_new_cell * old_cell * d_sigmoid(forget_gate);
    d_z[2] = d_new_cell * input_gate * d_tanh(candidate);
    d_cell = d_new_cell * forget_gate + d_z[0] * peepholes[0] + d_z[1] * peepholes[1];
    // BEGIN STARTER
    // const math_t input_gate = sigmoid(z[0]);
    // const math_t forget_gate = sigmoid(z[1]);
    // const math_t candidate = std::tanh(z[2]), squashed = std::tanh(new_cell);
    // const math_t output_gate = sigmoid(z[3]);
    // d_z[3] = d_h * squashed * d_sigmoid(output_gate);
    // const math_t d_new_cell = d_cell + d_h * output_gate * d_tanh(squashed);
    // d_z[0] = d_new_cell * candidate * d_sigmoid(input_gate);
    // d_z[1] = d_new_cell * old_cell * d_sigmoid(forget_gate);
    // d_z[2] = d_new_cell * input_gate * d_tanh(candidate);
    // d_cell = d_new_cell * forget_gate;
    // END STARTER
    // END SOLUTION
  }
};
