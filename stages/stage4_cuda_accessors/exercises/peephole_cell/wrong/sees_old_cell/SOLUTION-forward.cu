  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= old_cell.size(1)) return;
  for (int64_t row = blockIdx.y; row < old_cell.size(0); row += gridDim.y) {
    const scalar_t before = old_cell[row][unit];
    const scalar_t input_gate = sigmoid(z[row][0][unit] + peepholes[0][unit] * before);
    const scalar_t candidate_cell = elu(z[row][2][unit]);
    const scalar_t cell = before + candidate_cell * input_gate;
    const scalar_t output_gate = sigmoid(z[row][1][unit] + peepholes[1][unit] * before);
    gates[row][0][unit] = input_gate;
    gates[row][1][unit] = output_gate;
    gates[row][2][unit] = candidate_cell;
    new_cell[row][unit] = cell;
    new_h[row][unit] = std::tanh(cell) * output_gate;
  }
