// What runs before the kernels of the operators: the gradient of the cell, errors for derivatives that do not
// exist, and autocast. Each of these calls the operator again, and the dispatcher then takes the next key, so
// that fake tensors reach the fake kernels.
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "operators.h"

// Static variables of templates and of functions in a class are shared by the whole process, even between
// libraries that were loaded separately. Without this unnamed namespace, a second library that is built from
// this source, with other names for its operators, would call the operators of the first.
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CellFunction : torch::autograd::Function<CellFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& input, const Tensor& weights,
                               const Tensor& bias, const Tensor& old_h, const Tensor& old_cell) {
    static const auto cell = find_operator<Cell>(LLTM_OPERATOR("cell"));
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [new_h, new_cell, z] = cell.call(input, weights, bias, old_h, old_cell);
    ctx->save_for_backward({input, weights, old_h, new_cell, z});
    ctx->mark_non_differentiable({z});
    ctx->set_materialize_grads(false);  // a gradient that does not arrive stays undefined: no zeros are made
    return {new_h, new_cell, z};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto cell_backward = find_operator<CellBackward>(LLTM_OPERATOR("cell_backward"));
    const variable_list saved = ctx->get_saved_variables();
    std::array<bool, 5> needs;
    for (size_t i = 0; i < needs.size(); ++i) needs[i] = ctx->needs_input_grad(i);
    auto optional = [](const Tensor& grad) { return grad.defined() ? std::optional(grad) : std::nullopt; };
    auto [d_X, d_weights, d_bias, d_old_cell] = cell_backward.call(
        optional(grads[0]), optional(grads[1]), saved[0], saved[1], saved[2], saved[3], saved[4], needs);
    Tensor d_input, d_old_h;
    if (d_X.defined()) {
      const c10::SymInt I = saved[0].sym_size(1), columns = d_X.sym_size(1);
      if (needs[0]) d_input = d_X.narrow_symint(1, columns - I, I);
      if (needs[3]) d_old_h = d_X.narrow_symint(1, 0, saved[2].sym_size(1));
    }
    return {d_input, d_weights, d_bias, d_old_h, d_old_cell};
  }
};

std::tuple<Tensor, Tensor, Tensor> cell_autograd(const Tensor& input, const Tensor& weights,
                                                 const Tensor& bias, const Tensor& old_h,
                                                 const Tensor& old_cell) {
  const variable_list results = CellFunction::apply(input, weights, bias, old_h, old_cell);
  return {results[0], results[1], results[2]};
}

// A call of an operator that has no derivative. In the graph, its node is connected with all tensors that the
// operator got, so that every derivative that needs this node raises the error.
struct Refusal : torch::autograd::Function<Refusal> {
  static variable_list forward(AutogradContext* ctx, at::TensorList /*connected*/,
                               const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    ctx->saved_data["name"] = op.schema().name();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    op.callBoxed(stack);
    variable_list results;
    for (const c10::IValue& result : torch::jit::last(stack, op.schema().returns().size()))
      if (result.toTensor().defined()) results.push_back(result.toTensor());
    return results;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list&) {
    TORCH_CHECK(false, "lltm: ", ctx->saved_data["name"].toStringRef(),
                " has no derivative: only cell has one, and it is once_differentiable");
  }
};

// For the operators that have no derivative: asking for one later raises an error.
void without_derivative(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  variable_list connected;
  bool is_tracked = false;
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    connected.push_back(argument.toTensor());
    is_tracked |= at::GradMode::is_enabled() && connected.back().requires_grad();
    TORCH_CHECK(!connected.back()._fw_grad(0).defined(), "lltm: ", op.schema().name(),
                " has no forward-mode derivative");
  }
  if (!is_tracked) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return op.callBoxed(stack);
  }
  const variable_list results = Refusal::apply(at::TensorList(connected), op, stack);
  auto next = results.begin();
  for (auto result = stack->end() - op.schema().returns().size(); result != stack->end(); ++result)
    if (result->toTensor().defined()) *result = *next++;
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, Autograd, m) {
  m.impl("cell", &cell_autograd);
  for (const char* name : {"cell_backward", "pointwise", "pointwise_backward"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&without_derivative>());
}

// Under autocast, all arguments except float64 are cast to its dtype, as in torch's own lstm_cell on a GPU.
template <at::DeviceType device>
std::tuple<Tensor, Tensor, Tensor> cell_autocast(const Tensor& input, const Tensor& weights,
                                                 const Tensor& bias, const Tensor& old_h,
                                                 const Tensor& old_cell) {
  static const auto cell = find_operator<Cell>(LLTM_OPERATOR("cell"));
  const c10::impl::ExcludeDispatchKeyGuard only_once(
      at::autocast::get_autocast_dispatch_key_from_device_type(device));
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(device);
  auto cast = [dtype](const Tensor& tensor) { return at::autocast::cached_cast(dtype, tensor, device); };
  return cell.call(cast(input), cast(weights), cast(bias), cast(old_h), cast(old_cell));
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, AutocastCPU, m) { m.impl("cell", &cell_autocast<at::kCPU>); }

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, AutocastCUDA, m) { m.impl("cell", &cell_autocast<at::kCUDA>); }

}  // namespace
