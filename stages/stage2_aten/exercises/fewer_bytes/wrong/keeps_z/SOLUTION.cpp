std::vector<Tensor> forward(const Tensor& z) {
  const int64_t S = z.size(1) / 2;
  Tensor t = z.narrow(1, 0, S).tanh(), s = z.narrow(1, S, S).sigmoid();
  return {t * s, z, t, s};
}

Tensor backward(const Tensor& grad, const std::vector<Tensor>& saved) {
  const Tensor &t = saved[1], &s = saved[2];
  return at::cat({at::tanh_backward(grad * s, t), at::sigmoid_backward(grad * t, s)}, 1);
}
