// The operators: schemas, checks of the arguments, and autocast. Other files register the kernels.
#include <Python.h>

#include <ATen/autocast_mode.h>
#include <ATen/ops/zeros.h>

#include "operators.h"

using at::Tensor;

// z (B, 3S): pre-activations of input gate, output gate and candidate cell. gates: their activations.
EXPAND_TORCH_LIBRARY(LLTM_NAMESPACE, m) {
  m.def("pointwise(Tensor z, Tensor old_cell) -> (Tensor new_h, Tensor new_cell, Tensor gates)",
        {at::Tag::pt2_compliant_tag});
  m.def(
      "pointwise_backward(Tensor? grad_h, Tensor? grad_cell, Tensor gates, Tensor new_cell)"
      " -> (Tensor d_z, Tensor d_old_cell)",
      {at::Tag::pt2_compliant_tag});
}

void check(const char* name, const Tensor& tensor, at::IntArrayRef shape, const char* other_name,
           const Tensor& other) {
  TORCH_CHECK(tensor.scalar_type() == other.scalar_type(), "lltm: ", name, " has dtype ",
              tensor.scalar_type(), ", but ", other_name, " has ", other.scalar_type());
  TORCH_CHECK(tensor.device() == other.device(), "lltm: ", name, " is on ", tensor.device(), ", but ",
              other_name, " is on ", other.device());
  TORCH_CHECK(tensor.sizes() == shape, "lltm: ", name, " has shape ", tensor.sizes(), ", but ", other_name,
              " of shape ", other.sizes(), " calls for ", shape);
}

void check_forward(const Tensor& z, const Tensor& old_cell) {
  TORCH_CHECK(z.is_floating_point(), "lltm: z has dtype ", z.scalar_type(),
              ", expected a floating-point dtype");
  TORCH_CHECK(z.dim() == 2 && z.size(1) % 3 == 0, "lltm: z has shape ", z.sizes(), ", expected (B, 3S)");
  check("old_cell", old_cell, {z.size(0), z.size(1) / 3}, "z", z);
}

void check_backward(const std::optional<Tensor>& grad_h, const std::optional<Tensor>& grad_cell,
                    const Tensor& gates, const Tensor& new_cell) {
  TORCH_CHECK(gates.dim() == 3 && gates.size(1) == 3, "lltm: gates has shape ", gates.sizes(),
              ", expected (B, 3, S)");
  const int64_t shape[] = {gates.size(0), gates.size(2)};
  check("new_cell", new_cell, shape, "gates", gates);
  if (grad_h) check("grad_h", *grad_h, shape, "gates", gates);
  if (grad_cell) check("grad_cell", *grad_cell, shape, "gates", gates);
}

Tensor or_zero(const std::optional<Tensor>& grad, const Tensor& like) {
  return grad ? *grad : at::zeros({}, like.options()).expand_as(like);
}

// With g++, a static object in a template or in an inline function is shared by the whole process. In this
// unnamed namespace, each library has its own; otherwise two builds, under two names, would both call the
// operator that was found first.
namespace {

// Under autocast, both arguments are cast to its dtype, as in torch's own lstm_cell on CUDA.
template <at::DeviceType device>
std::tuple<Tensor, Tensor, Tensor> pointwise_autocast(const Tensor& z, const Tensor& old_cell) {
  static const auto pointwise =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow(C10_STRINGIZE(LLTM_NAMESPACE) "::pointwise", "")
          .typed<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&)>();
  const c10::impl::ExcludeDispatchKeyGuard only_once(
      at::autocast::get_autocast_dispatch_key_from_device_type(device));
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(device);
  return pointwise.call(at::autocast::cached_cast(dtype, z, device),
                        at::autocast::cached_cast(dtype, old_cell, device));
}

}  // namespace

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, AutocastCPU, m) {
  m.impl("pointwise", &pointwise_autocast<at::kCPU>);
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, AutocastCUDA, m) {
  m.impl("pointwise", &pointwise_autocast<at::kCUDA>);
}

// `from . import _C` loads this library, which registers the operators; _C.NAMESPACE is their namespace.
PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The operators of the LLTM cell.", -1,
                                   nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddStringConstant(module, "NAMESPACE", C10_STRINGIZE(LLTM_NAMESPACE));
  return module;
}
