// The LLTM cell in C++: forward and backward in ATen, and their binding to Python.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <optional>
#include <tuple>

namespace {

using at::Tensor;

void check_argument(const char* name, const Tensor& tensor, at::IntArrayRef shape, const Tensor& input) {
  TORCH_CHECK(tensor.sizes() == shape, "lltm: ", name, " has shape ", tensor.sizes(), ", expected ", shape);
  TORCH_CHECK(tensor.scalar_type() == input.scalar_type(), "lltm: ", name, " has dtype ", tensor.scalar_type());
  TORCH_CHECK(tensor.device() == input.device(), "lltm: ", name, " is on ", tensor.device());
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> forward(const Tensor& input,       // [B,I]
                                                           const Tensor& weights,     // [3S,S+I]
                                                           const Tensor& bias,        // [3S]
                                                           const Tensor& old_h,       // [B,S]
                                                           const Tensor& old_cell) {  // [B,S]
  int64_t S = old_h.size(1), B = input.size(0);
  check_argument("weights", weights, {3 * S, S + input.size(1)}, input);
  check_argument("bias", bias, {3 * S}, input);
  check_argument("old_h", old_h, {B, S}, input);
  check_argument("old_cell", old_cell, {B, S}, input);
  Tensor X = at::cat({old_h, input}, 1);
  Tensor gates = at::addmm(bias, X, weights.t());
  gates.narrow(1, 0, 2 * S).sigmoid_();
  Tensor input_gate = gates.narrow(1, 0, S), output_gate = gates.narrow(1, S, S);
  Tensor candidate_cell = gates.narrow(1, 2 * S, S);
  at::elu_(candidate_cell);
  Tensor new_cell = at::addcmul(old_cell, candidate_cell, input_gate);
  Tensor tanh_new_cell = at::tanh(new_cell);
  Tensor new_h = tanh_new_cell * output_gate;
  return {new_h, new_cell, X, gates, tanh_new_cell};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad_h, const Tensor& grad_cell,
                                                            const Tensor& X, const Tensor& gates,
                                                            const Tensor& tanh_new_cell, const Tensor& weights,
                                                            std::array<bool, 5> needs) {
  int64_t S = tanh_new_cell.size(1);
  Tensor input_gate = gates.narrow(1, 0, S), output_gate = gates.narrow(1, S, S);
  Tensor candidate_cell = gates.narrow(1, 2 * S, S);
  Tensor d_z = at::empty_like(gates);
  Tensor d_cell = at::tanh_backward(output_gate * grad_h, tanh_new_cell).add_(grad_cell);
  Tensor d_i = d_z.narrow(1, 0, S), d_o = d_z.narrow(1, S, S), d_g = d_z.narrow(1, 2 * S, S);
  at::mul_out(d_i, d_cell, candidate_cell);
  at::mul_out(d_o, grad_h, tanh_new_cell);
  at::mul_out(d_g, d_cell, input_gate);
  Tensor d_io = d_z.narrow(1, 0, 2 * S);
  at::sigmoid_backward_out(d_io, d_io, gates.narrow(1, 0, 2 * S));
  at::elu_backward_out(d_g, d_g, 1, 1, 1, true, candidate_cell);
  Tensor d_input, d_old_h, d_weights, d_bias;
  if (needs[0] || needs[3]) {
    Tensor d_X = d_z.mm(weights);
    d_old_h = d_X.narrow(1, 0, S);
    d_input = d_X.narrow(1, S, X.size(1) - S);
  }
  if (needs[1]) d_weights = d_z.t().mm(X);
  if (needs[2]) d_bias = d_z.sum(0);
  return {d_input, d_weights, d_bias, d_old_h, d_cell};
}
}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, py::call_guard<py::gil_scoped_release>());
  m.def("backward", &backward, py::call_guard<py::gil_scoped_release>());
}
