void check_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                     const Tensor& old_cell) {
  TORCH_CHECK(input.is_floating_point(), "lltm: input has dtype ", input.scalar_type());
  TORCH_CHECK(input.dim() == 2, "lltm: input has shape ", input.sizes());
  TORCH_CHECK(weights.dim() == 2, "lltm: weights has shape ", weights.sizes());
  TORCH_CHECK(weights.size(1) == old_h.size(1) + input.size(1), "lltm: weights has shape ", weights.sizes());
