void check_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                     const Tensor& old_cell) {
  TORCH_CHECK(input.is_cuda() && input.dim() == 2 && weights.dim() == 2, "lltm: wrong arguments");
  const int64_t B = input.size(0), I = input.size(1), S = weights.size(0) / 3;
  auto fits = [&](const Tensor& tensor, at::IntArrayRef shape) {
    return tensor.scalar_type() == input.scalar_type() && tensor.device() == input.device() && tensor.sizes() == shape;
  };
  TORCH_CHECK(fits(weights, {3 * S, S + I}) && fits(bias, {3 * S}) && fits(old_h, {B, S}) && fits(old_cell, {B, S}),
              "lltm: wrong arguments");
}
