// What runs before the kernels of the operators: the gradient of the recurrence, errors for derivatives that
// do not exist, and autocast. Each of these calls the operator again, and the dispatcher then takes the next
// key, so that fake tensors reach the fake kernels.
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "differentiable.h"

// Static variables of templates and of functions in a class are shared by the whole process, even between
// libraries that were loaded separately. Without this unnamed namespace, a second library that is built from
// this source, with other names for its operators, would call the operators of the first.
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

// The gradient of weights_h, from `d_recurrent` (T,B,columns), which are columns of d_z: the sum over all
// steps of d_recurrent[t].T @ (the state before step t). That state is the output of the step before, and h0
// at the first.
Tensor product_with_states(const Tensor& d_recurrent, const BackwardArguments& given) {
  const Tensor &outputs = given.outputs, &h0 = given.h0;
  const c10::SymInt T = outputs.sym_size(0), S = h0.sym_size(1), columns = d_recurrent.sym_size(2);
  if (T == 0) return at::zeros_symint({columns, S}, h0.options());
  const c10::SymInt first = given.reverse ? T - 1 : c10::SymInt(0), later = given.reverse ? 0 : 1,
                    earlier = given.reverse ? 1 : 0;
  const Tensor of_first = matrix_product(d_recurrent.select_symint(0, first).t(), h0);  // [columns,S]
  const Tensor d_later = d_recurrent.narrow_symint(0, later, T - 1).flatten(0, 1);
  return of_first + matrix_product(d_later.t(), outputs.narrow_symint(0, earlier, T - 1).flatten(0, 1));
}

// The columns of d_z that are the gradients of the recurrent parts, as one or two ranges:
// {first gate, gates}.
std::vector<std::pair<int64_t, int64_t>> recurrent_ranges(std::string_view cell) {
  return with_cell(cell, [](auto policy) {
    using Cell = decltype(policy);
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (int gate = 0; gate < Cell::kGates; ++gate) {
      const int64_t saved = Cell::recurrent(gate);
      if (!ranges.empty() && ranges.back().first + ranges.back().second == saved)
        ++ranges.back().second;
      else
        ranges.push_back({saved, 1});
    }
    return ranges;
  });
}

// apply() connects the results with the tensors that it gets one by one, and not with those in `given`.
struct RecurrenceFunction : torch::autograd::Function<RecurrenceFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& /*x*/, const Tensor& /*weights_h*/,
                               const Tensor& /*h0*/, const OptionalTensor& /*bias_h*/,
                               const OptionalTensor& /*cell0*/, const ForwardArguments& given) {
    static const auto recurrence = find_operator<RecurrenceSignature>(LLTM_OPERATOR("recurrence"));
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [outputs, h, last_cell, cells, z] = call(recurrence, given);
    ctx->save_for_backward({given.weights_h, given.h0, given.cell0.value_or(Tensor()),
                            given.lengths.value_or(Tensor()), outputs, cells, z});
    ctx->saved_data["has_bias"] = given.bias_h.has_value();
    ctx->saved_data["cell"] = std::string(given.cell);
    ctx->saved_data["reverse"] = given.reverse;
    ctx->saved_data["rung"] = std::string(given.rung);
    // Backward computes with outputs, cells and z. As differentiable results they connect its derivative with
    // all arguments; otherwise a second derivative would lack what they contribute.
    if (!given.cell0) ctx->mark_non_differentiable({last_cell, cells});
    ctx->set_materialize_grads(false);  // a gradient that does not arrive stays undefined: no zeros are made
    return {outputs, h, last_cell, cells, z};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto recurrence_backward =
        find_operator<RecurrenceBackwardSignature>(LLTM_OPERATOR("recurrence_backward"));
    variable_list gradients(6);  // one for each argument of forward
    if (std::none_of(grads.begin(), grads.end(), [](const Tensor& grad) { return grad.defined(); }))
      return gradients;
    // The products of backward have the dtype of those in forward, even if backward is called under autocast.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const variable_list saved = ctx->get_saved_variables();
    const std::string cell = ctx->saved_data["cell"].toStringRef(),
                      rung = ctx->saved_data["rung"].toStringRef();
    const BackwardArguments given = {optional(grads[0]),
                                     optional(grads[1]),
                                     optional(grads[2]),
                                     /*weights_h=*/saved[0],
                                     /*h0=*/saved[1],
                                     /*cell0=*/optional(saved[2]),
                                     /*lengths=*/optional(saved[3]),
                                     /*outputs=*/saved[4],
                                     /*cells=*/saved[5],
                                     /*z=*/saved[6],
                                     cell,
                                     ctx->saved_data["reverse"].toBool(),
                                     rung};
    const c10::SymInt S = given.h0.sym_size(1);

    // The operator has no derivative, and takes no gradient of cells and z, which only a second
    // backward pass has.
    const bool is_second = grads[3].defined() || grads[4].defined();
    const auto [d_z, d_h0, d_cell0] =
        is_second || requires_grad(grads) || requires_grad(saved) || has_tangent(grads)
            ? differentiable_recurrence_backward(given, grads[3], grads[4])
            : call(recurrence_backward, given);
    // Tensors that are given have consecutive numbers.
    const bool has_bias = ctx->saved_data["has_bias"].toBool(), has_cell = given.cell0.has_value();
    const bool needs_weights = ctx->needs_input_grad(1), needs_bias = has_bias && ctx->needs_input_grad(3);
    if (ctx->needs_input_grad(0)) gradients[0] = d_z.narrow_symint(2, 0, constants_of(cell).gates * S);
    variable_list d_weights_h, d_bias_h;
    for (const auto& [first, gates] : recurrent_ranges(cell)) {
      const Tensor d_recurrent = d_z.narrow_symint(2, first * S, gates * S);
      if (needs_weights) d_weights_h.push_back(product_with_states(d_recurrent, given));
      if (needs_bias) d_bias_h.push_back(d_recurrent.sum(at::IntArrayRef{0, 1}));
    }
    auto joined = [](const variable_list& parts) { return parts.size() == 1 ? parts[0] : at::cat(parts); };
    if (needs_weights) gradients[1] = joined(d_weights_h);
    if (ctx->needs_input_grad(2)) gradients[2] = d_h0;
    if (needs_bias) gradients[3] = joined(d_bias_h);
    if (has_cell && ctx->needs_input_grad(3 + has_bias)) gradients[4] = d_cell0;
    return gradients;
  }
};

ForwardResults recurrence_autograd(const ForwardArguments& given) {
  static const auto recurrence = find_operator<RecurrenceSignature>(LLTM_OPERATOR("recurrence"));
  const auto& [x, weights_h, bias_h, h0, cell0, lengths, cell, reverse, rung, save] = given;
  const variable_list arguments = {x, weights_h, bias_h.value_or(Tensor()), h0, cell0.value_or(Tensor())};
  // A C++ autograd function supports neither torch.func nor forward mode.
  if (is_transformed() || has_tangent(arguments)) return differentiable_recurrence(given);
  if (!requires_grad(arguments)) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return call(recurrence, given);
  }
  ForwardArguments saving = given;
  saving.save = true;
  const variable_list results = RecurrenceFunction::apply(x, weights_h, h0, bias_h, cell0, saving);
  // For a caller, cells and z are constants.
  auto saved = [&](const Tensor& tensor) {
    return given.save ? tensor.detach() : at::empty({0}, tensor.options());
  };
  return {results[0], results[1], results[2], saved(results[3]), saved(results[4])};
}

// Its gradient calls the operator with autograd, so it has further derivatives.
struct ProductFunction : torch::autograd::Function<ProductFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& left, const Tensor& right,
                        const OptionalTensor& bias) {
    static const auto product = find_operator<ProductSignature>(LLTM_OPERATOR("product"));
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    ctx->save_for_backward({left, right});
    ctx->saved_data["has_bias"] = bias.has_value();
    return product.call(left, right, bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &left = saved[0], &right = saved[1], &grad = grads[0];
    variable_list gradients(3);
    if (ctx->needs_input_grad(0)) gradients[0] = matrix_product(grad, right.t());
    if (ctx->needs_input_grad(1)) gradients[1] = matrix_product(left.t(), grad);
    if (ctx->saved_data["has_bias"].toBool() && ctx->needs_input_grad(2)) gradients[2] = grad.sum(0);
    return gradients;
  }
};

Tensor product_autograd(const Tensor& left, const Tensor& right, const OptionalTensor& bias) {
  if (is_transformed() || has_tangent({left, right, bias.value_or(Tensor())}))
    return bias ? at::addmm(*bias, left, right) : left.mm(right);
  return ProductFunction::apply(left, right, bias);
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
                " has no derivative: only recurrence has derivatives");
  }
};

// For the operators that have no derivative: asking for one later raises an error.
void without_derivative(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  variable_list connected;
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    connected.push_back(argument.toTensor());
    TORCH_CHECK(!connected.back()._fw_grad(0).defined(), "lltm: ", op.schema().name(),
                " has no forward-mode derivative");
  }
  if (!requires_grad(connected)) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return op.callBoxed(stack);
  }
  const variable_list results = Refusal::apply(at::TensorList(connected), op, stack);
  auto next = results.begin();
  for (auto result = stack->end() - op.schema().returns().size(); result != stack->end(); ++result)
    if (result->toTensor().defined()) *result = *next++;
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, Autograd, m) {
  m.impl("recurrence", as_recurrence<&recurrence_autograd>());
  m.impl("product", &product_autograd);
  m.impl("recurrence_backward", torch::CppFunction::makeFromBoxedFunction<&without_derivative>());
}

// Under autocast, all floating-point arguments except float64 are cast to its dtype, as in torch's own
// lstm_cell on a GPU.
template <at::DeviceType device>
void with_autocast(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard only_once(
      at::autocast::get_autocast_dispatch_key_from_device_type(device));
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(device);
  for (auto argument = stack->end() - op.schema().arguments().size(); argument != stack->end(); ++argument)
    if (argument->isTensor()) *argument = at::autocast::cached_cast(dtype, argument->toTensor(), device);
  op.callBoxed(stack);
}

template <at::DeviceType device>
void register_autocast(torch::Library& m) {
  for (const char* name : {"lltm_sequence", "lstm_sequence", "gru_sequence", "recurrence"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&with_autocast<device>>());
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, AutocastCPU, m) { register_autocast<at::kCPU>(m); }

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, AutocastCUDA, m) { register_autocast<at::kCUDA>(m); }

}  // namespace
