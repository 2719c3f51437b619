// The operators: schemas, checks of the arguments, shapes of the results, and the cell's matrix products.
#include "operators.h"

#include <Python.h>

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

using at::Tensor;

// z (B, 3S): pre-activations of input gate, output gate and candidate cell. A gradient that `needs` does not
// ask for is not computed: the result is an undefined tensor, which is None in Python. d_X is the gradient of
// old_h and input side by side, or only of the one that is needed.
EXPAND_TORCH_LIBRARY(LLTM_NAMESPACE, m) {
  m.def(
      "cell(Tensor input, Tensor weights, Tensor bias, Tensor old_h, Tensor old_cell)"
      " -> (Tensor new_h, Tensor new_cell, Tensor z)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "cell_backward(Tensor? grad_h, Tensor? grad_cell, Tensor input, Tensor weights, Tensor old_h,"
      " Tensor new_cell, Tensor z, bool[5] needs)"
      " -> (Tensor d_X, Tensor d_weights, Tensor d_bias, Tensor d_old_cell)",
      {at::Tag::pt2_compliant_tag});
  m.def("pointwise(Tensor z, Tensor old_cell) -> (Tensor new_h, Tensor new_cell)",
        {at::Tag::pt2_compliant_tag});
  m.def(
      "pointwise_backward(Tensor? grad_h, Tensor? grad_cell, Tensor z, Tensor new_cell, bool[2] needs)"
      " -> (Tensor d_z, Tensor d_bias, Tensor d_old_cell)",
      {at::Tag::pt2_compliant_tag});
}

// Checks of the arguments. Sizes are SymInts, because under torch.compile they may be unknown.
// ------------------------

template <typename... Reason>
void check(const char* name, const Tensor& tensor, c10::SymIntArrayRef shape, const Tensor& first,
           const char* first_name, const Reason&... reason) {
  TORCH_CHECK(tensor.scalar_type() == first.scalar_type(), "lltm: ", name, " has dtype ",
              tensor.scalar_type(), ", but ", first_name, " has ", first.scalar_type());
  TORCH_CHECK(tensor.device() == first.device(), "lltm: ", name, " is on ", tensor.device(), ", but ",
              first_name, " is on ", first.device());
  TORCH_CHECK(tensor.sym_sizes() == shape, "lltm: ", name, " has shape ", tensor.sym_sizes(), ", but ",
              reason..., " for ", shape);
}

void check_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                     const Tensor& old_cell) {
  TORCH_CHECK(input.is_floating_point(), "lltm: input has dtype ", input.scalar_type(),
              ", expected a floating-point dtype");
  TORCH_CHECK(input.dim() == 2, "lltm: input has shape ", input.sym_sizes(),
              ", expected two dimensions: (B, I)");
  TORCH_CHECK(weights.dim() == 2, "lltm: weights has shape ", weights.sym_sizes(),
              ", expected two dimensions: (3S, S+I)");
  const c10::SymInt B = input.sym_size(0), I = input.sym_size(1), S = weights.sym_size(0) / 3;

  auto check_one = [&](const char* name, const Tensor& tensor, c10::SymIntArrayRef shape) {
    check(name, tensor, shape, input, "input", "weights of shape ", weights.sym_sizes(),
          " and input of shape ", input.sym_sizes(), " call");
  };
  check_one("weights", weights, {3 * S, S + I});
  check_one("bias", bias, {3 * S});
  check_one("old_h", old_h, {B, S});
  check_one("old_cell", old_cell, {B, S});
}

// Checks a tensor whose shape follows from that of z, (B, 3S).
void check_with_z(const char* name, const Tensor& tensor, c10::SymIntArrayRef shape, const Tensor& z) {
  check(name, tensor, shape, z, "z", "z of shape ", z.sym_sizes(), " calls");
}

// Checks z, and returns the shape of the states that belong to it.
std::array<c10::SymInt, 2> check_z(const Tensor& z) {
  TORCH_CHECK(z.is_floating_point(), "lltm: z has dtype ", z.scalar_type(),
              ", expected a floating-point dtype");
  TORCH_CHECK(z.dim() == 2 && z.sym_size(1) % 3 == 0, "lltm: z has shape ", z.sym_sizes(),
              ", expected (B, 3S)");
  return {z.sym_size(0), z.sym_size(1) / 3};
}

void check_pointwise(const Tensor& z, const Tensor& old_cell) {
  check_with_z("old_cell", old_cell, check_z(z), z);
}

void check_pointwise_backward(const std::optional<Tensor>& grad_h, const std::optional<Tensor>& grad_cell,
                              const Tensor& z, const Tensor& new_cell) {
  const auto shape = check_z(z);
  check_with_z("new_cell", new_cell, shape, z);
  if (grad_h) check_with_z("grad_h", *grad_h, shape, z);
  if (grad_cell) check_with_z("grad_cell", *grad_cell, shape, z);
}

void check_factors(const Tensor& input, const Tensor& weights, const Tensor& old_h, const Tensor& z) {
  const auto [B, S] = check_z(z);
  TORCH_CHECK(input.dim() == 2, "lltm: input has shape ", input.sym_sizes(),
              ", expected two dimensions: (B, I)");
  const c10::SymInt I = input.sym_size(1);
  check_with_z("input", input, {B, I}, z);
  check_with_z("weights", weights, {3 * S, S + I}, z);
  check_with_z("old_h", old_h, {B, S}, z);
}

// The cell on every device: ATen computes the products, the operator for the pointwise part the rest.
// ------------------------

// X = [old_h, input]. On a GPU, one long product saves more time than building X takes. On a CPU, two
// products over halves of the weights, which are views, are faster except for small cells. Neither version
// saves X.
bool joins(const Tensor& input) { return input.is_cuda(); }

Tensor pre_activations(const Tensor& input,    // [B,I]
                       const Tensor& weights,  // [3S,S+I]
                       const Tensor& bias,     // [3S]
                       const Tensor& old_h) {  // [B,S]
  const Tensor columns = weights.t();          // [S+I,3S]
  if (joins(input)) return at::addmm(bias, at::cat({old_h, input}, 1), columns);
  const int64_t I = input.size(1), S = old_h.size(1);
  Tensor z = at::addmm(bias, old_h, columns.narrow(0, 0, S));  // [B,3S]
  return z.addmm_(input, columns.narrow(0, S, I));
}

// d_z.T @ X, the gradient of the weights.
Tensor product_with_X(const Tensor& d_z,      // [B,3S]
                      const Tensor& input,    // [B,I]
                      const Tensor& old_h) {  // [B,S]
  const Tensor columns = d_z.t();             // [3S,B]
  if (joins(input)) return columns.mm(at::cat({old_h, input}, 1));
  const int64_t I = input.size(1), S = old_h.size(1);
  Tensor d_weights = at::empty({3 * S, S + I}, d_z.options());
  Tensor of_h = d_weights.narrow(1, 0, S), of_input = d_weights.narrow(1, S, I);
  at::mm_out(of_h, columns, old_h);
  at::mm_out(of_input, columns, input);
  return d_weights;
}

std::tuple<Tensor, Tensor, Tensor> cell(const Tensor& input,       // [B,I]
                                        const Tensor& weights,     // [3S,S+I]
                                        const Tensor& bias,        // [3S]
                                        const Tensor& old_h,       // [B,S]
                                        const Tensor& old_cell) {  // [B,S]
  check_arguments(input, weights, bias, old_h, old_cell);
  static const auto pointwise = find_operator<Pointwise>(LLTM_OPERATOR("pointwise"));
  const Tensor z = pre_activations(input, weights, bias, old_h);
  auto [new_h, new_cell] = pointwise.call(z, old_cell);
  return {new_h, new_cell, z};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> cell_backward(
    const std::optional<Tensor>& grad_h,     // [B,S], nullopt counts as zero
    const std::optional<Tensor>& grad_cell,  // [B,S], the same
    const Tensor& input,                     // [B,I]
    const Tensor& weights,                   // [3S,S+I]
    const Tensor& old_h,                     // [B,S]
    const Tensor& new_cell,                  // [B,S]
    const Tensor& z,                         // [B,3S]
    std::array<bool, 5> needs) {             // which arguments of `cell` need a gradient
  if (!grad_h && !grad_cell) return {};
  check_factors(input, weights, old_h, z);
  static const auto pointwise_backward =
      find_operator<PointwiseBackward>(LLTM_OPERATOR("pointwise_backward"));
  // The products of backward have the dtype of those in forward, even if backward is called under autocast.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const int64_t I = input.size(1), S = old_h.size(1);
  const auto [needs_input, needs_weights, needs_bias, needs_old_h, needs_old_cell] = needs;

  const auto [d_z, d_bias, d_old_cell] =
      pointwise_backward.call(grad_h, grad_cell, z, new_cell, {needs_bias, needs_old_cell});
  Tensor d_X, d_weights;
  if (needs_old_h || needs_input) {
    const int64_t first = needs_old_h ? 0 : S, last = needs_input ? S + I : S;
    d_X = d_z.mm(weights.narrow(1, first, last - first));
  }
  if (needs_weights) d_weights = product_with_X(d_z, input, old_h);
  return {d_X, d_weights, d_bias, d_old_cell};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CompositeExplicitAutograd, m) {
  m.impl("cell", &cell);
  m.impl("cell_backward", &cell_backward);
}

// The shapes, dtypes and strides of the results. torch.compile, torch.export and the meta device need them,
// because they run an operator without data.
// ---------------------------------------------------------------------------------

std::tuple<Tensor, Tensor> pointwise_meta(const Tensor& z, const Tensor& old_cell) {
  check_pointwise(z, old_cell);
  return {at::empty_symint(old_cell.sym_sizes(), z.options()),
          at::empty_symint(old_cell.sym_sizes(), z.options())};
}

std::tuple<Tensor, Tensor, Tensor> pointwise_backward_meta(const std::optional<Tensor>& grad_h,
                                                           const std::optional<Tensor>& grad_cell,
                                                           const Tensor& z, const Tensor& new_cell,
                                                           std::array<bool, 2> needs) {
  check_pointwise_backward(grad_h, grad_cell, z, new_cell);
  const auto [needs_bias, needs_old_cell] = needs;
  Tensor d_bias, d_old_cell;
  if (needs_bias) d_bias = at::empty_symint({z.sym_size(1)}, z.options());
  if (needs_old_cell) d_old_cell = at::empty_symint(new_cell.sym_sizes(), z.options());
  return {at::empty_symint(z.sym_sizes(), z.options()), d_bias, d_old_cell};
}

std::tuple<Tensor, Tensor, Tensor> cell_meta(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                             const Tensor& old_h, const Tensor& old_cell) {
  check_arguments(input, weights, bias, old_h, old_cell);
  const auto shape = old_cell.sym_sizes();
  return {at::empty_symint(shape, input.options()), at::empty_symint(shape, input.options()),
          at::empty_symint({shape[0], 3 * shape[1]}, input.options())};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> cell_backward_meta(const std::optional<Tensor>& grad_h,
                                                              const std::optional<Tensor>& grad_cell,
                                                              const Tensor& input, const Tensor& weights,
                                                              const Tensor& old_h, const Tensor& new_cell,
                                                              const Tensor& z, std::array<bool, 5> needs) {
  if (!grad_h && !grad_cell) return {};
  check_factors(input, weights, old_h, z);
  check_pointwise_backward(grad_h, grad_cell, z, new_cell);
  auto empty_if = [&](bool needed, c10::SymIntArrayRef shape) {
    return needed ? at::empty_symint(shape, z.options()) : Tensor();
  };
  const auto [needs_input, needs_weights, needs_bias, needs_old_h, needs_old_cell] = needs;
  const c10::SymInt zero = 0;
  const c10::SymInt columns =
      (needs_old_h ? old_h.sym_size(1) : zero) + (needs_input ? input.sym_size(1) : zero);
  return {empty_if(needs_old_h || needs_input, {input.sym_size(0), columns}),
          empty_if(needs_weights, weights.sym_sizes()), empty_if(needs_bias, {z.sym_size(1)}),
          empty_if(needs_old_cell, new_cell.sym_sizes())};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, Meta, m) {
  m.impl("cell", &cell_meta);
  m.impl("cell_backward", &cell_backward_meta);
  m.impl("pointwise", &pointwise_meta);
  m.impl("pointwise_backward", &pointwise_backward_meta);
}

// `from . import _C` loads this library, which registers the operators; _C.NAMESPACE is their namespace.
PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The operators of the LLTM cell.", -1,
                                   nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddStringConstant(module, "NAMESPACE", C10_STRINGIZE(LLTM_NAMESPACE));
  return module;
}
