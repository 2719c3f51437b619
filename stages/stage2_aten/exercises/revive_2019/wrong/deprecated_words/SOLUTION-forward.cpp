at::Tensor forward(const at::Tensor& x) {
  const at::Tensor dense = x.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softsign", [&] {
    const scalar_t* from = dense.data<scalar_t>();
    scalar_t* to = y.data<scalar_t>();
    for (int64_t k = 0; k < x.numel(); ++k) to[k] = from[k] / (1 + std::abs(from[k]));
  });
  return y;
}
