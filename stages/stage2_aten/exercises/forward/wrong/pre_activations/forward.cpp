std::tuple<Tensor, Tensor, Tensor, Tensor> forward(const Tensor& input, const Tensor& weights,
                                                   const Tensor& bias, const Tensor& old_h,
                                                   const Tensor& old_cell) {
  check_arguments(input, weights, bias, old_h, old_cell);
  Tensor X = at::cat({old_h, input}, 1);
  Tensor gates = at::addmm(bias, X, weights.t());
  auto parts = gates.chunk(3, 1);
  Tensor new_cell = old_cell + at::elu(parts[2]) * parts[0].sigmoid();
  Tensor new_h = new_cell.tanh() * parts[1].sigmoid();
  return {new_h, new_cell, X, gates};
