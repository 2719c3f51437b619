// A gated unit: out = tanh(z_a) * sigmoid(z_b) of the halves of z, and its gradient.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <torch/csrc/utils/pybind.h>

#include <vector>

using at::Tensor;

// Returns out (B,S) and what backward needs: tanh and out.
std::vector<Tensor> forward(const Tensor& z) {  // [B,2S]
  auto halves = z.chunk(2, 1);
  Tensor t = halves[0].tanh();
  Tensor out = t * halves[1].sigmoid();
  return {out, t, out};
}

// Returns d_z (B,2S).
Tensor backward(const Tensor& grad, const std::vector<Tensor>& saved) {  // [B,S], what forward returned
  const Tensor &t = saved[0], &out = saved[1];
  Tensor s = out / t;
  return at::cat({at::tanh_backward(grad * s, t), at::sigmoid_backward(grad * t, s)}, 1);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, py::arg("z"));
  m.def("backward", &backward, py::arg("grad"), py::arg("saved"));
}
