for (int64_t row = 0; row < B; ++row)
  for (int64_t unit = 0; unit < S; ++unit) {
    const int64_t at = row * S + unit, at_gates = row * 3 * S + unit;
    const double reset = sigmoid(from_input[at_gates] + from_h[at_gates]);
    const double update = sigmoid(from_input[at_gates + S] + from_h[at_gates + S]);
    const double candidate = std::tanh(from_input[at_gates + 2 * S] + reset * from_h[at_gates + 2 * S]);
    new_h[at] = (1 - update) * candidate + update * h[at];
  }
