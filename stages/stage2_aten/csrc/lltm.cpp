// The LLTM cell in C++: forward and backward in ATen, and their binding to Python.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <optional>
#include <tuple>

using at::Tensor;

void check_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                     const Tensor& old_cell) {
  TORCH_CHECK(input.is_floating_point(), "lltm: input has dtype ", input.scalar_type(),
              ", expected a floating-point dtype");
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
  const int64_t S = old_h.size(1);

  Tensor X = at::cat({old_h, input}, 1);              // [B,S+I]
  Tensor gates = at::addmm(bias, X, weights.t());     // [B,3S]: z_i, z_o, z_g, activated in place below
  Tensor input_gate = gates.narrow(1, 0, S);          // [B,S], a view; so are the next two
  Tensor output_gate = gates.narrow(1, S, S);         // [B,S]
  Tensor candidate_cell = gates.narrow(1, 2 * S, S);  // [B,S]
  gates.narrow(1, 0, 2 * S).sigmoid_();               // both sigmoids in one call
  at::elu_(candidate_cell);

  Tensor new_cell = at::addcmul(old_cell, candidate_cell, input_gate);
  Tensor new_h = new_cell.tanh().mul_(output_gate);
  return {new_h, new_cell, X, gates};
}

// Returns d_input, d_weights, d_bias, d_old_h and d_old_cell; undefined (None in Python) where not needed.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const std::optional<Tensor>& grad_h,     // [B,S], nullopt counts as zero
    const std::optional<Tensor>& grad_cell,  // [B,S], the same
    const Tensor& weights,                   // [3S,S+I]
    const Tensor& X,                         // [B,S+I]
    const Tensor& gates,                     // [B,3S]
    const Tensor& new_cell,                  // [B,S]
    const std::array<bool, 5>& needs_input_grad) {
  if (!grad_h && !grad_cell) return {};
  const int64_t S = new_cell.size(1);
  Tensor input_gate = gates.narrow(1, 0, S);
  Tensor output_gate = gates.narrow(1, S, S);
  Tensor candidate_cell = gates.narrow(1, 2 * S, S);

  Tensor d_z = at::empty_like(gates);  // [B,3S]: each third first holds the gradient of its gate
  Tensor d_input_gate = d_z.narrow(1, 0, S);
  Tensor d_output_gate = d_z.narrow(1, S, S);
  Tensor d_candidate_cell = d_z.narrow(1, 2 * S, S);

  Tensor d_new_cell;
  if (grad_h) {
    Tensor tanh_new_cell = new_cell.tanh();
    at::mul_out(d_output_gate, *grad_h, tanh_new_cell);
    d_new_cell = at::tanh_backward(*grad_h * output_gate, tanh_new_cell);
    if (grad_cell) d_new_cell += *grad_cell;
  } else {
    d_output_gate.zero_();
    d_new_cell = *grad_cell;
  }
  at::mul_out(d_input_gate, d_new_cell, candidate_cell);
  at::mul_out(d_candidate_cell, d_new_cell, input_gate);

  // Turn the gradient of each gate into that of its pre-activation, in place, using only the activated value.
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
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The LLTM cell in C++.";
  m.def("forward", &forward, "-> (new_h, new_cell, X, gates)", py::arg("input"), py::arg("weights"),
        py::arg("bias"), py::arg("old_h"), py::arg("old_cell"), py::call_guard<py::gil_scoped_release>());
  m.def("backward", &backward, "-> (d_input, d_weights, d_bias, d_old_h, d_old_cell), None where not needed",
        py::arg("grad_h"), py::arg("grad_cell"), py::arg("weights"), py::arg("X"), py::arg("gates"),
        py::arg("new_cell"), py::arg("needs_input_grad"), py::call_guard<py::gil_scoped_release>());
}
