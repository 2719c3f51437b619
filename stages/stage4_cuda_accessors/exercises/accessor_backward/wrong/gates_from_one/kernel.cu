__global__ void backward_kernel(Accessor<scalar_t, 3> d_z,               // [B,3,S]: input, output, candidate
                                Accessor<scalar_t, 2> d_old_cell,        // [B,S]
                                Accessor<const scalar_t, 2> grad_h,      // [B,S], any strides, zero ones too
                                Accessor<const scalar_t, 2> grad_cell,   // [B,S], the same
                                Accessor<const scalar_t, 3> gates,       // [B,3,S]
                                Accessor<const scalar_t, 2> new_cell) {  // [B,S]
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= new_cell.size(1)) return;
  for (int64_t row = blockIdx.y; row < new_cell.size(0); row += gridDim.y) {
    const scalar_t input_gate = gates[row][1][unit];
    const scalar_t output_gate = gates[row][2][unit];
    const scalar_t candidate_cell = gates[row][3][unit];
    const scalar_t tanh_new_cell = std::tanh(new_cell[row][unit]);
    const scalar_t d_new_h = grad_h[row][unit];

    const scalar_t d_new_cell = grad_cell[row][unit] + d_new_h * output_gate * d_tanh(tanh_new_cell);
    d_old_cell[row][unit] = d_new_cell;
    d_z[row][1][unit] = d_new_cell * candidate_cell * d_sigmoid(input_gate);
    d_z[row][2][unit] = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
    d_z[row][3][unit] = d_new_cell * input_gate * d_elu(candidate_cell);
