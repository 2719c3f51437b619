__global__ void forward_kernel(Accessor<scalar_t, 2> new_h,             // [B,S]
                               Accessor<scalar_t, 2> new_cell,          // [B,S]
                               Accessor<scalar_t, 3> gates,             // [B,3,S]: input, output, candidate
                               Accessor<const scalar_t, 3> z,           // [B,3,S], same order
                               Accessor<const scalar_t, 2> old_cell) {  // [B,S], any strides
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= z.size(1)) return;
  for (int64_t row = blockIdx.y; row < old_cell.size(0); row += gridDim.y) {
    const scalar_t input_gate = sigmoid(z[row][0][unit]);
    const scalar_t output_gate = sigmoid(z[row][1][unit]);
    const scalar_t candidate_cell = elu(z[row][2][unit]);
    gates[row][0][unit] = input_gate;
    gates[row][1][unit] = output_gate;
    gates[row][2][unit] = candidate_cell;

    const scalar_t cell = old_cell[row][unit] + candidate_cell * input_gate;
    new_cell[row][unit] = cell;
    new_h[row][unit] = std::tanh(cell) * output_gate;
