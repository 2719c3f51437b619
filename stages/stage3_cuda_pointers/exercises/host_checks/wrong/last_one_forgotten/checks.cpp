void check_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                     const Tensor& old_cell) {
  TORCH_CHECK(input.is_cuda(), "lltm: input is on ", input.device(), ", expected a CUDA device");
  TORCH_CHECK(input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble,
              "lltm: input has dtype ", input.scalar_type(), ", expected Float or Double");
  TORCH_CHECK(input.dim() == 2, "lltm: input has shape ", input.sizes(), ", expected two dimensions: (B, I)");
  TORCH_CHECK(weights.dim() == 2, "lltm: weights has shape ", weights.sizes(),
              ", expected two dimensions: (3S, S+I)");
  const int64_t B = input.size(0), I = input.size(1), S = weights.size(0) / 3;

  auto check = [&](const char* name, const Tensor& tensor, at::IntArrayRef shape) {
    TORCH_CHECK(tensor.scalar_type() == input.scalar_type(), "lltm: ", name, " has dtype ",
                tensor.scalar_type(), ", but input has ", input.scalar_type());
    TORCH_CHECK(tensor.device() == input.device(), "lltm: ", name, " is on ", tensor.device(),
                ", but input is on ", input.device());
    TORCH_CHECK(tensor.sizes() == shape, "lltm: ", name, " has shape ", tensor.sizes(),
                ", but weights of shape ", weights.sizes(), " and input of shape ", input.sizes(),
                " call for ", shape);
  };
  check("weights", weights, {3 * S, S + I});
  check("bias", bias, {3 * S});
  check("old_h", old_h, {B, S});
}
