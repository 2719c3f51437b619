const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
if (unit >= state_size) return;
for (int64_t row = blockIdx.y; row < batch_size; row += 1) {
  const int64_t at = row * state_size + unit;
  const int64_t at_gates = row * 3 * state_size + unit;

  const scalar_t input_gate = gates[at_gates];
  const scalar_t output_gate = gates[at_gates + state_size];
  const scalar_t candidate_cell = gates[at_gates + 2 * state_size];
  const scalar_t tanh_new_cell = std::tanh(new_cell[at]);
  const scalar_t d_new_h = grad_h ? grad_h[at] : scalar_t(0);
  const scalar_t from_above = grad_cell ? grad_cell[at] : scalar_t(0);

  const scalar_t d_new_cell = from_above + d_new_h * output_gate * d_tanh(tanh_new_cell);
  d_old_cell[at] = d_new_cell;
  d_z[at_gates] = d_new_cell * candidate_cell * d_sigmoid(input_gate);
  d_z[at_gates + state_size] = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
  d_z[at_gates + 2 * state_size] = d_new_cell * input_gate * d_elu(candidate_cell);
}
