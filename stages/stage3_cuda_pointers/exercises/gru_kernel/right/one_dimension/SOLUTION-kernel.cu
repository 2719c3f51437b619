for (int64_t at = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; at < B * S; at += gridDim.x * blockDim.x) {
  const int64_t at_gates = at / S * 3 * S + at % S;
  const double reset = sigmoid(from_input[at_gates] + from_h[at_gates]);
  const double update = sigmoid(from_input[at_gates + S] + from_h[at_gates + S]);
  const double candidate = std::tanh(from_input[at_gates + 2 * S] + reset * from_h[at_gates + 2 * S]);
  new_h[at] = candidate;
  new_h[at] += update * (h[at] - candidate);
}
