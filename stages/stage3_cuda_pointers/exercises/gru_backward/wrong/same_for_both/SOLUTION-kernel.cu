const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
if (unit >= S) return;
for (int64_t row = blockIdx.y; row < B; row += gridDim.y) {
  const int64_t at = row * S + unit, at_gates = row * 3 * S + unit;
  const double reset = gates[at_gates];
  const double update = gates[at_gates + S];
  const double candidate = gates[at_gates + 2 * S];

  const double d_update = grad_h[at] * (h[at] - candidate) * d_sigmoid(update);
  const double d_candidate = grad_h[at] * (1 - update) * (1 - candidate * candidate);
  const double d_reset = d_candidate * from_h[at_gates + 2 * S] * d_sigmoid(reset);
  d_h[at] = grad_h[at] * update;
  d_from_input[at_gates] = d_from_h[at_gates] = d_reset;
  d_from_input[at_gates + S] = d_from_h[at_gates + S] = d_update;
  d_from_input[at_gates + 2 * S] = d_candidate;
  d_from_h[at_gates + 2 * S] = d_candidate;
}
