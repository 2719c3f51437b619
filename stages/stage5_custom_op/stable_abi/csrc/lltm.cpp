// The operators in torch's stable ABI: schemas and checks of the arguments. Other files register the kernels.
#include <Python.h>

#include <array>
#include <sstream>
#include <string>

#include "operators.h"

using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// z (B, 3S): pre-activations of input gate, output gate and candidate cell. gates: their activations.
EXPAND_TORCH_LIBRARY(LLTM_NAMESPACE, m) {
  m.def("pointwise(Tensor z, Tensor old_cell) -> (Tensor new_h, Tensor new_cell, Tensor gates)");
  m.def(
      "pointwise_backward(Tensor? grad_h, Tensor? grad_cell, Tensor gates, Tensor new_cell)"
      " -> (Tensor d_z, Tensor d_old_cell)");
}

// Sizes as torch prints them; those of the stable ABI have no operator<<.
std::string text(IntHeaderOnlyArrayRef sizes) {
  std::ostringstream out;
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? ", " : "[") << sizes[i];
  out << (sizes.empty() ? "[]" : "]");
  return out.str();
}

void check(const char* name, const Tensor& tensor, IntHeaderOnlyArrayRef shape, const char* other_name,
           const Tensor& other) {
  STD_TORCH_CHECK(tensor.scalar_type() == other.scalar_type(), "lltm: ", name, " has dtype ",
                  tensor.scalar_type(), ", but ", other_name, " has ", other.scalar_type());
  STD_TORCH_CHECK(tensor.device() == other.device(), "lltm: ", name, " is on another device than ",
                  other_name);
  STD_TORCH_CHECK(tensor.sizes().equals(shape), "lltm: ", name, " has shape ", text(tensor.sizes()), ", but ",
                  other_name, " of shape ", text(other.sizes()), " calls for ", text(shape));
}

bool is_floating_point(const Tensor& tensor) {
  const ScalarType dtype = tensor.scalar_type();
  return dtype == ScalarType::Double || dtype == ScalarType::Float || dtype == ScalarType::Half ||
         dtype == ScalarType::BFloat16;
}

void check_forward(const Tensor& z, const Tensor& old_cell) {
  STD_TORCH_CHECK(is_floating_point(z), "lltm: z has dtype ", z.scalar_type(),
                  ", expected a floating-point dtype");
  STD_TORCH_CHECK(z.dim() == 2 && z.size(1) % 3 == 0, "lltm: z has shape ", text(z.sizes()),
                  ", expected (B, 3S)");
  check("old_cell", old_cell, {z.size(0), z.size(1) / 3}, "z", z);
}

void check_backward(const std::optional<Tensor>& grad_h, const std::optional<Tensor>& grad_cell,
                    const Tensor& gates, const Tensor& new_cell) {
  STD_TORCH_CHECK(gates.dim() == 3 && gates.size(1) == 3, "lltm: gates has shape ", text(gates.sizes()),
                  ", expected (B, 3, S)");
  const int64_t shape[] = {gates.size(0), gates.size(2)};
  check("new_cell", new_cell, shape, "gates", gates);
  if (grad_h) check("grad_h", *grad_h, shape, "gates", gates);
  if (grad_cell) check("grad_cell", *grad_cell, shape, "gates", gates);
}

// torch/csrc/stable/ops.h wraps a few dozen of torch's operators. All others are called by name, with their
// arguments on a stack, which holds the results afterwards.
Tensor expand(const Tensor& tensor, IntHeaderOnlyArrayRef size) {
  using torch::stable::detail::from;
  std::array<StableIValue, 3> stack{from(tensor), from(size), from(/*implicit=*/false)};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::expand", "", stack.data(), TORCH_ABI_VERSION));
  return torch::stable::detail::to<Tensor>(stack[0]);
}

Tensor or_zero(const std::optional<Tensor>& grad, const Tensor& like) {
  return grad ? *grad : expand(torch::stable::new_zeros(like, {}), like.sizes());
}

// `from . import _C` loads this library, which registers the operators; _C.NAMESPACE is their namespace.
PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The operators of the LLTM cell.", -1,
                                   nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddStringConstant(module, "NAMESPACE", C10_STRINGIZE(LLTM_NAMESPACE));
  return module;
}
