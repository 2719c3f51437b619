std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const std::optional<Tensor>& grad_h,     // [B,S], nullopt counts as zero
    const std::optional<Tensor>& grad_cell,  // [B,S], the same
    const Tensor& weights,                   // [3S,S+I]
    const Tensor& X,                         // [B,S+I]
    const Tensor& gates,                     // [B,3S]
    const Tensor& tanh_new_cell,             // [B,S]
    const std::array<bool, 5>& needs_input_grad) {
  if (!grad_h && !grad_cell) return {};
  const int64_t S = tanh_new_cell.size(1);
  Tensor input_gate = gates.narrow(1, 0, S);
  Tensor output_gate = gates.narrow(1, S, S);
  Tensor candidate_cell = gates.narrow(1, 2 * S, S);

  Tensor d_z = at::empty_like(gates);  // [B,3S]: each third first holds the gradient of its gate
  Tensor d_input_gate = d_z.narrow(1, 0, S);
  Tensor d_output_gate = d_z.narrow(1, S, S);
  Tensor d_candidate_cell = d_z.narrow(1, 2 * S, S);

  Tensor d_new_cell;
  if (grad_h) {
    at::mul_out(d_output_gate, *grad_h, tanh_new_cell);
    Tensor through_h = at::tanh_backward(*grad_h * output_gate, tanh_new_cell);
    d_new_cell = grad_cell ? grad_cell->add_(through_h) : through_h;
  } else {
    d_output_gate.zero_();
    d_new_cell = *grad_cell;
  }
  at::mul_out(d_input_gate, d_new_cell, candidate_cell);
  at::mul_out(d_candidate_cell, d_new_cell, input_gate);

  // From the gradient of each gate to that of its pre-activation, in place; each needs the activated value
  // only.
  Tensor d_z_io = d_z.narrow(1, 0, 2 * S);
  at::sigmoid_backward_out(d_z_io, d_z_io, gates.narrow(1, 0, 2 * S));
  at::elu_backward_out(d_candidate_cell, d_candidate_cell, /*alpha=*/1, /*scale=*/1, /*input_scale=*/1,
                       /*is_result=*/true, candidate_cell);

  auto [needs_input, needs_weights, needs_bias, needs_old_h, needs_old_cell] = needs_input_grad;
  Tensor d_input, d_weights, d_bias, d_old_h, d_old_cell;
  if (needs_input || needs_old_h) {
    Tensor d_X = d_z.mm(weights);  // [B,S+I]
    d_old_h = d_X.narrow(1, 0, S);
    d_input = d_X.narrow(1, S, X.size(1) - S);
  }
  if (needs_weights) d_weights = d_z.t().mm(X);
  if (needs_bias) d_bias = d_z.sum(0);
  if (needs_old_cell) d_old_cell = d_new_cell;
  return {d_input, d_weights, d_bias, d_old_h, d_old_cell};
