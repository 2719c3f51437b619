// The LLTM cell on a GPU: checks, matrix products in ATen, kernel launches, and the binding to Python.
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <optional>
#include <tuple>

using at::Tensor;

// Defined in lltm_kernel.cu. Gates and their gradients have shape (B, 3, S).
void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& gates, const Tensor& z,
                    const Tensor& old_cell);
void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& gates, const Tensor& new_cell);

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
  check("old_cell", old_cell, {B, S});
}

// Returns new_h, new_cell and what else backward needs: X and the activated gates.
std::tuple<Tensor, Tensor, Tensor, Tensor> forward(const Tensor& input,       // [B,I]
                                                   const Tensor& weights,     // [3S,S+I]
                                                   const Tensor& bias,        // [3S]
                                                   const Tensor& old_h,       // [B,S]
                                                   const Tensor& old_cell) {  // [B,S]
  check_arguments(input, weights, bias, old_h, old_cell);
  const c10::cuda::CUDAGuard guard(input.device());
  const int64_t B = old_cell.size(0), S = old_cell.size(1);

  Tensor X = at::cat({old_h, input}, 1);                       // [B,S+I]
  Tensor z = at::addmm(bias, X, weights.t()).view({B, 3, S});  // [B,3,S]

  // Every element will be written, so nothing needs to be zeroed.
  Tensor gates = at::empty_like(z);
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  launch_forward(new_h, new_cell, gates, z, old_cell);
  return {new_h, new_cell, X, gates};
}

// Returns d_input, d_weights, d_bias, d_old_h and d_old_cell; undefined (None in Python) where not needed.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const std::optional<Tensor>& grad_h,     // [B,S], nullopt counts as zero
    const std::optional<Tensor>& grad_cell,  // [B,S], the same
    const Tensor& weights,                   // [3S,S+I]
    const Tensor& X,                         // [B,S+I]
    const Tensor& gates,                     // [B,3,S]
    const Tensor& new_cell,                  // [B,S]
    const std::array<bool, 5>& needs_input_grad) {
  if (!grad_h && !grad_cell) return {};
  const c10::cuda::CUDAGuard guard(gates.device());
  const int64_t B = new_cell.size(0), S = new_cell.size(1);

  // A missing gradient is a single zero, expanded to (B, S) with strides of zero.
  auto or_zero = [&](const std::optional<Tensor>& grad) {
    return grad ? *grad : at::zeros({}, gates.options()).expand({B, S});
  };
  Tensor d_gates = at::empty_like(gates);  // [B,3,S]
  Tensor d_new_cell = at::empty_like(new_cell);
  launch_backward(d_gates, d_new_cell, or_zero(grad_h), or_zero(grad_cell), gates, new_cell);
  Tensor d_z = d_gates.view({B, 3 * S});

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
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The LLTM cell over CUDA kernels.";
  m.def("forward", &forward, "-> (new_h, new_cell, X, gates)", py::arg("input"), py::arg("weights"),
        py::arg("bias"), py::arg("old_h"), py::arg("old_cell"), py::call_guard<py::gil_scoped_release>());
  m.def("backward", &backward, "-> (d_input, d_weights, d_bias, d_old_h, d_old_cell), None where not needed",
        py::arg("grad_h"), py::arg("grad_cell"), py::arg("weights"), py::arg("X"), py::arg("gates"),
        py::arg("new_cell"), py::arg("needs_input_grad"), py::call_guard<py::gil_scoped_release>());
}
