// One function in C++, and its binding to Python.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/where.h>
#include <torch/csrc/utils/pybind.h>

using at::Tensor;

// The derivative of elu from its own result e, of any shape.
Tensor d_elu(const Tensor& e) {
  TORCH_CHECK(e.is_floating_point(), "d_elu: e has dtype ", e.scalar_type(),
              ", expected a floating-point dtype");
  return at::where(e > 0, e.new_ones({}), e + 1);
}

// BEGIN SOLUTION binding: bind d_elu in a module, with the name of its argument, e, and a docstring.
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("d_elu", &d_elu, "The derivative of elu from its own result e.", py::arg("e"));
}
// BEGIN STARTER
// PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
// END STARTER
// END SOLUTION
