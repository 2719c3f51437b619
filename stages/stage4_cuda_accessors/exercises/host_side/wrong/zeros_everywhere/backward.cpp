  auto or_zero = [&](const std::optional<Tensor>& grad) {
    return grad ? *grad : at::zeros({B, S}, gates.options());
  };
  Tensor d_gates = at::empty_like(gates);  // [B,3,S]
  Tensor d_new_cell = at::empty_like(new_cell);
  launch_backward(d_gates, d_new_cell, or_zero(grad_h), or_zero(grad_cell), gates, new_cell);
  Tensor d_z = d_gates.view({B, 3 * S});
