// Registers the operator lab::half. Do not change this file; edit CMakeLists.txt.
#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

namespace {

at::Tensor half(const at::Tensor& x) { return at::mul(x, 0.5); }

TORCH_LIBRARY(lab, m) { m.def("half(Tensor x) -> Tensor", &half); }

}  // namespace
