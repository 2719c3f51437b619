at::Tensor backward(const at::Tensor& grad, const at::Tensor& x) {
  const at::Tensor dense = x.contiguous();
  at::Tensor d_x = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softsign_backward", [&] {
    const scalar_t* from = dense.const_data_ptr<scalar_t>();
    const scalar_t* above = grad.const_data_ptr<scalar_t>();
    scalar_t* to = d_x.mutable_data_ptr<scalar_t>();
    for (int64_t k = 0; k < x.numel(); ++k) {
      const scalar_t size = 1 + std::abs(from[k]);
      to[k] = above[k] / (size * size);
    }
  });
  return d_x;
}
