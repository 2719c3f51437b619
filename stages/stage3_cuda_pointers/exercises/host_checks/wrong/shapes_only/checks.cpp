void check_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                     const Tensor& old_cell) {
  TORCH_CHECK(input.dim() == 2, "lltm: input has shape ", input.sizes(), ", expected two dimensions: (B, I)");
  TORCH_CHECK(weights.dim() == 2, "lltm: weights has shape ", weights.sizes(), ", expected (3S, S+I)");
  const int64_t B = input.size(0), I = input.size(1), S = weights.size(0) / 3;
  auto check = [&](const char* name, const Tensor& tensor, at::IntArrayRef shape) {
    TORCH_CHECK(tensor.sizes() == shape, "lltm: ", name, " has shape ", tensor.sizes(), ", expected ", shape);
  };
  check("weights", weights, {3 * S, S + I});
  check("bias", bias, {3 * S});
  check("old_h", old_h, {B, S});
  check("old_cell", old_cell, {B, S});
}
