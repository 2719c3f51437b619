  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= new_cell.size(1)) return;
  for (int64_t row = blockIdx.y; row < new_cell.size(0); row += gridDim.y) {
    const scalar_t input_gate = gates[row][0][unit];
    const scalar_t output_gate = gates[row][1][unit];
    const scalar_t candidate_cell = gates[row][2][unit];
    const scalar_t tanh_new_cell = std::tanh(new_cell[row][unit]);
    const scalar_t d_new_h = grad_h[row][unit];

    const scalar_t d_z_o = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
    const scalar_t d_new_cell =
        grad_cell[row][unit] + d_new_h * output_gate * d_tanh(tanh_new_cell);
    const scalar_t d_z_i = d_new_cell * candidate_cell * d_sigmoid(input_gate);
    d_z[row][0][unit] = d_z_i;
    d_z[row][1][unit] = d_z_o;
    d_z[row][2][unit] = d_new_cell * input_gate * d_elu(candidate_cell);
    d_old_cell[row][unit] = d_new_cell + d_z_i * peepholes[0][unit];
  }
