template <typename scalar_t>
__global__ void forward_kernel(scalar_t* __restrict__ new_h,           // [B,S]
                               scalar_t* __restrict__ new_cell,        // [B,S]
                               scalar_t* __restrict__ gates,           // [B,3S]: input, output, candidate
                               const scalar_t* __restrict__ z,         // [B,3S], same order
                               const scalar_t* __restrict__ old_cell,  // [B,S]
                               int64_t batch_size, int64_t state_size) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= state_size) return;
  for (int64_t row = blockIdx.y; row < batch_size; row += gridDim.y) {
    const int64_t at = row * state_size + unit;            // in a [B,S] tensor
    const int64_t at_gates = row * state_size + unit;

    const scalar_t input_gate = sigmoid(z[at_gates]);
    const scalar_t output_gate = sigmoid(z[at_gates + state_size]);
    const scalar_t candidate_cell = elu(z[at_gates + 2 * state_size]);
    gates[at_gates] = input_gate;
    gates[at_gates + state_size] = output_gate;
    gates[at_gates + 2 * state_size] = candidate_cell;

    const scalar_t cell = old_cell[at] + candidate_cell * input_gate;
    new_cell[at] = cell;
    new_h[at] = std::tanh(cell) * output_gate;
  }
}
