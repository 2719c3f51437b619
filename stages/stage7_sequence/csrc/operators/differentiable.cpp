// The recurrence in torch's own operations, for derivatives that the operators do not have:
// derivatives of the gradient, forward mode, and the transforms of torch.func. The cells are the same
// policies as everywhere.
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "differentiable.h"

using at::Tensor;

bool is_transformed() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
}

bool has_tangent(at::TensorList tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& tensor) { return tensor.defined() && tensor._fw_grad(0).defined(); });
}

bool requires_grad(at::TensorList tensors) {
  return at::GradMode::is_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
           return tensor.defined() && tensor.requires_grad();
         });
}

namespace {  // each library has its own, as in autograd.cpp

// A number of every row and unit, (B,S), as the type of all arithmetic in the policies of cells.h.
struct Plane {
  Tensor tensor;

  Plane() = default;
  Plane(Tensor numbers) : tensor(std::move(numbers)) {}
  Plane(double number) : tensor(at::scalar_tensor(number, at::kDouble)) {}  // takes the dtype of the other

  friend Plane operator+(const Plane& a, const Plane& b) { return a.tensor + b.tensor; }
  friend Plane operator-(const Plane& a, const Plane& b) { return a.tensor - b.tensor; }
  friend Plane operator*(const Plane& a, const Plane& b) { return a.tensor * b.tensor; }
  Plane& operator+=(const Plane& other) { return *this = *this + other; }
};

Plane sigmoid(const Plane& z) { return z.tensor.sigmoid(); }
Plane gate_tanh(const Plane& z) { return z.tensor.tanh(); }
Plane elu(const Plane& z) { return at::elu(z.tensor); }
// e = elu(z)
Plane d_elu(const Plane& e) { return at::where(e.tensor > 0, 1, e.tensor + 1); }

// What all steps share. A number in 16 bits is computed in float, as in the operators.
class Steps {
 public:
  Steps(const Tensor& numbers, const OptionalTensor& lengths, bool reverse)
      : count(numbers.sym_size(0).guard_int(__FILE__, __LINE__)),
        math(at::toOpMathType(numbers.scalar_type())),
        lengths_(lengths),
        reverse_(reverse) {}

  const int64_t count;        // T
  const at::ScalarType math;  // of the arithmetic

  int64_t time_of(int64_t step) const { return reverse_ ? count - 1 - step : step; }

  Tensor to_math(const Tensor& tensor) const { return tensor.to(math); }
  // Undefined for a tensor that is missing.
  Tensor to_math(const OptionalTensor& tensor) const { return tensor ? tensor->to(math) : Tensor(); }

  // For the rows that have this step, `yes`; for the others, `no`.
  Tensor select(int64_t time, const Plane& yes, const Plane& no) const {
    return lengths_ ? at::where((*lengths_ > time).unsqueeze(1), yes.tensor, no.tensor) : yes.tensor;
  }

 private:
  OptionalTensor lengths_;  // [B]
  bool reverse_;
};

// The planes of a tensor (B,count*S).
template <int count>
void split(const Tensor& tensor, Plane (&planes)[count]) {
  const std::vector<Tensor> parts = tensor.chunk(count, 1);
  for (int k = 0; k < count; ++k) planes[k] = parts[k];
}

template <int count>
Tensor join(const Plane (&planes)[count]) {
  std::vector<Tensor> parts;
  for (const Plane& plane : planes) parts.push_back(plane.tensor);
  return at::cat(parts, 1);
}

Tensor stacked(const std::vector<Tensor>& tensors, at::ScalarType dtype, const Tensor& if_none) {
  return tensors.empty() ? if_none : at::stack(tensors).to(dtype);
}

template <typename Cell>
ForwardResults forward(const ForwardArguments& given) {
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const Tensor &x = given.x, &h0 = given.h0;
  const Steps steps(x, given.lengths, given.reverse);
  const at::ScalarType dtype = x.scalar_type();
  const Tensor columns = steps.to_math(given.weights_h).t(), bias = steps.to_math(given.bias_h);
  std::vector<Tensor> outputs(steps.count), cells(Cell::kHasCell ? steps.count : 0), saved(steps.count);
  Tensor h = steps.to_math(h0), cell = steps.to_math(given.cell0);
  for (int64_t step = 0; step < steps.count; ++step) {
    const int64_t time = steps.time_of(step);
    const Tensor product = h.mm(columns);  // [B,G*S]
    Plane of_input[G], recurrent[G], z[K], new_cell = cell;
    split(steps.to_math(x.select(0, time)), of_input);
    split(bias.defined() ? product + bias : product, recurrent);
    Cell::pre_activations(z, of_input, recurrent);
    const Plane new_h = Cell::forward(z, Plane(h), new_cell);
    h = outputs[time] = steps.select(time, new_h, h);
    if (Cell::kHasCell) cell = cells[time] = steps.select(time, new_cell, cell);
    saved[time] = join(z);
  }
  const c10::SymInt B = h0.sym_size(0), S = h0.sym_size(1), none = 0;
  const Tensor nothing = at::zeros_symint({none}, x.options());
  const Tensor no_steps = at::zeros_symint({none, B, S}, x.options());
  return {stacked(outputs, dtype, no_steps), h.to(dtype), Cell::kHasCell ? cell.to(dtype) : nothing,
          Cell::kHasCell ? stacked(cells, dtype, no_steps) : nothing,
          stacked(saved, dtype, at::zeros_symint({none, B, K * S}, x.options()))};
}

template <typename Cell>
BackwardResults backward(const BackwardArguments& given, const Tensor& grad_cells, const Tensor& grad_z) {
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const Tensor &h0 = given.h0, &cells = given.cells, &z = given.z;
  const Steps steps(z, given.lengths, given.reverse);
  const at::ScalarType dtype = z.scalar_type();
  const Tensor weights = steps.to_math(given.weights_h);
  const c10::SymInt S = h0.sym_size(1);
  // An element of a tensor of all steps.
  auto at_time = [&](const Tensor& all, int64_t time) { return steps.to_math(all.select(0, time)); };
  auto first_gradient = [&](const OptionalTensor& grad) {
    return Plane(grad ? steps.to_math(*grad) : at::zeros_like(h0, steps.math));
  };

  Plane d_h = first_gradient(given.grad_h), d_cell = first_gradient(given.grad_cell);
  std::vector<Tensor> d_z(steps.count);
  for (int64_t step = steps.count - 1; step >= 0; --step) {
    const int64_t time = steps.time_of(step), before = step ? steps.time_of(step - 1) : 0;
    const Tensor old_h = step ? at_time(given.outputs, before) : steps.to_math(h0);
    Tensor old_cell, new_cell;
    if (Cell::kHasCell) {
      old_cell = step ? at_time(cells, before) : steps.to_math(given.cell0);
      new_cell = at_time(cells, time);
      if (grad_cells.defined()) d_cell += at_time(grad_cells, time);
    }
    if (given.grad_outputs) d_h += at_time(*given.grad_outputs, time);

    // The padding past the end of a row may contain NaN, and zero times NaN is NaN.
    Plane gates[K], d_gates[K], d_old_cell = d_cell;
    split(steps.select(time, at_time(z, time), 0.0), gates);
    const Plane direct = Cell::backward(d_gates, gates, Plane(old_h), Plane(old_cell), Plane(new_cell), d_h,
                                        d_old_cell);  // d_old_cell was the gradient of the new cell
    Tensor d_pre_activations = join(d_gates);         // [B,K*S]
    if (grad_z.defined()) d_pre_activations = d_pre_activations + at_time(grad_z, time);
    d_z[time] = steps.select(time, d_pre_activations, 0.0);

    std::vector<Tensor> d_recurrent;
    for (int gate = 0; gate < G; ++gate)
      d_recurrent.push_back(d_z[time].narrow_symint(1, Cell::recurrent(gate) * S, S));
    d_h = steps.select(time, direct + at::cat(d_recurrent, 1).mm(weights), d_h);
    if (Cell::kHasCell) d_cell = steps.select(time, d_old_cell, d_cell);
  }
  return {stacked(d_z, dtype, at::zeros_like(z)), d_h.tensor.to(dtype),
          Cell::kHasCell ? d_cell.tensor.to(dtype) : at::zeros_like(cells)};
}

}  // namespace

ForwardResults differentiable_recurrence(const ForwardArguments& given) {
  check_recurrence(given);
  return with_cell(given.cell, [&](auto policy) { return forward<decltype(policy)>(given); });
}

BackwardResults differentiable_recurrence_backward(const BackwardArguments& given, const Tensor& grad_cells,
                                                   const Tensor& grad_z) {
  return with_cell(given.cell,
                   [&](auto policy) { return backward<decltype(policy)>(given, grad_cells, grad_z); });
}
