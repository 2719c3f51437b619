// A function in two files, and its binding.
// BEGIN SOLUTION header
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
// BEGIN STARTER
// #include <ATen/core/Tensor.h>
// END STARTER
// END SOLUTION
#include <torch/csrc/utils/pybind.h>

// BEGIN SOLUTION type
using at::Tensor;

Tensor blend(const Tensor& a, const Tensor& b, double share);  // in blend.cpp
// BEGIN STARTER
// using at::Tensor;
//
// Tensor blend(const Tensor& a, const Tensor& b, float share);  // in blend.cpp
// END STARTER
// END SOLUTION

// Concatenates the rows of a, b and their mixture: (N,C), (N,C) -> (N,3C).
Tensor mix(const Tensor& a, const Tensor& b, double share) {
  TORCH_CHECK(a.sizes() == b.sizes(), "mix: a has shape ", a.sizes(), ", but b has ", b.sizes());
  return at::cat({a, b, blend(a, b, share)}, 1);
}

// BEGIN SOLUTION binding
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("mix", &mix, "Returns a, b and their mixture.", py::arg("a"), py::arg("b"), py::arg("share"));
}
// BEGIN STARTER
// PYBIND11_MODULE(mix, m) {
//   m.def("mix", &mix, "Returns a, b and their mixture.", py::arg("a"), py::arg("b"), py::arg("share"));
// }
// END STARTER
// END SOLUTION
