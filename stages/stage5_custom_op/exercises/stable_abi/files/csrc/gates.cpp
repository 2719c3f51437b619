// The operator gates::elu, for contiguous float32 tensors on the CPU.
#include <Python.h>

#include <cmath>
#include <cstdint>

// Plain C++, without torch.
void elu_of(float* result, const float* x, int64_t count) {
  for (int64_t k = 0; k < count; ++k) result[k] = x[k] > 0 ? x[k] : std::expm1(x[k]);
}

// BEGIN SOLUTION operator: the same operator, with only torch/csrc/stable/ and torch/headeronly/.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

using torch::stable::Tensor;

Tensor elu(const Tensor& x) {
  STD_TORCH_CHECK(x.scalar_type() == torch::headeronly::ScalarType::Float, "elu: x is not float32");
  STD_TORCH_CHECK(x.is_contiguous(), "elu: x is not contiguous");
  Tensor result = torch::stable::empty_like(x);
  elu_of(result.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.numel());
  return result;
}

STABLE_TORCH_LIBRARY(gates, m) { m.def("elu(Tensor x) -> Tensor"); }

STABLE_TORCH_LIBRARY_IMPL(gates, CPU, m) { m.impl("elu", TORCH_BOX(&elu)); }
// BEGIN STARTER
// #include <ATen/core/Tensor.h>
// #include <ATen/ops/empty_like.h>
// #include <torch/library.h>
//
// using at::Tensor;
//
// Tensor elu(const Tensor& x) {
//   TORCH_CHECK(x.scalar_type() == at::kFloat, "elu: x is not float32");
//   TORCH_CHECK(x.is_contiguous(), "elu: x is not contiguous");
//   Tensor result = at::empty_like(x);
//   elu_of(result.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.numel());
//   return result;
// }
//
// TORCH_LIBRARY(gates, m) { m.def("elu(Tensor x) -> Tensor"); }
//
// TORCH_LIBRARY_IMPL(gates, CPU, m) { m.impl("elu", &elu); }
// END STARTER
// END SOLUTION

PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The namespace gates.", -1, nullptr};
  return PyModule_Create(&definition);
}
