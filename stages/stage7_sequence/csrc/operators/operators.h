// What the sources of this library share: the namespace of its operators, their arguments as structs, how
// they call one another, the checks of their arguments, and the choice of a cell by its name.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <optional>
#include <string_view>
#include <tuple>

#include "../arrays.h"
#include "../cells.h"

// TORCH_LIBRARY does not expand macros in its arguments. With these, the namespace can be a macro
// that setup.py defines.
#define EXPAND_TORCH_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

using OptionalTensor = std::optional<at::Tensor>;

// The arguments and results of `recurrence`, in the order of its schema. Its kernels for autograd, fake
// tensors, the CPU and the GPU all take this struct.
struct ForwardArguments {
  at::Tensor x;            // [T,B,G*S]: the input part of the gates
  at::Tensor weights_h;    // [G*S,S]
  OptionalTensor bias_h;   // [G*S]
  at::Tensor h0;           // [B,S]
  OptionalTensor cell0;    // [B,S], if the cell has one
  OptionalTensor lengths;  // [B]: how many steps each row has; without them, all
  std::string_view cell;
  bool reverse;
  std::string_view rung;
  bool save;  // whether the results contain cells and z
};

// A tensor that the cell does not have or that is not saved has shape (0).
struct ForwardResults {
  at::Tensor outputs;  // [T,B,S]: h after each step
  at::Tensor h, cell;  // [B,S]: the last state
  at::Tensor cells;    // [T,B,S]
  at::Tensor z;        // [T,B,K*S]
};

// The same for `recurrence_backward`.
struct BackwardArguments {
  OptionalTensor grad_outputs, grad_h, grad_cell;  // upstream gradients, with the shapes of the results
  at::Tensor weights_h, h0;
  OptionalTensor cell0, lengths;
  at::Tensor outputs, cells, z;  // results of `recurrence`
  std::string_view cell;
  bool reverse;
  std::string_view rung;
};

struct BackwardResults {
  at::Tensor d_z;            // [T,B,K*S]: the gradients of the input parts and of the recurrent parts
  at::Tensor d_h0, d_cell0;  // [B,S]
};

// The dispatcher passes arguments and results one by one, as these C++ signatures of the operators say.
using RecurrenceSignature = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor& x, const at::Tensor& weights_h, const OptionalTensor& bias_h, const at::Tensor& h0,
    const OptionalTensor& cell0, const OptionalTensor& lengths, std::string_view cell, bool reverse,
    std::string_view rung, bool save);
using RecurrenceBackwardSignature = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const OptionalTensor& grad_outputs, const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
    const at::Tensor& weights_h, const at::Tensor& h0, const OptionalTensor& cell0,
    const OptionalTensor& lengths, const at::Tensor& outputs, const at::Tensor& cells, const at::Tensor& z,
    std::string_view cell, bool reverse, std::string_view rung);
using ProductSignature = at::Tensor(const at::Tensor& left, const at::Tensor& right,
                                    const OptionalTensor& bias);

inline auto as_tuple(const ForwardResults& made) {
  return std::make_tuple(made.outputs, made.h, made.cell, made.cells, made.z);
}
inline auto as_tuple(const BackwardResults& made) {
  return std::make_tuple(made.d_z, made.d_h0, made.d_cell0);
}

// What m.impl() registers for a function from a struct of arguments to a struct of results. (Functions return
// these pointers: as variables of templates, they would be shared between libraries, see autograd.cpp.)
template <auto function, typename Signature>
struct Unpacked;
template <auto function, typename Results, typename... Arguments>
struct Unpacked<function, Results(Arguments...)> {
  static Results call(Arguments... arguments) { return as_tuple(function({arguments...})); }
};
template <auto function>
constexpr auto as_recurrence() {
  return &Unpacked<function, RecurrenceSignature>::call;
}
template <auto function>
constexpr auto as_recurrence_backward() {
  return &Unpacked<function, RecurrenceBackwardSignature>::call;
}

// An operator of this library, called through torch's dispatcher, which selects the kernel for the given
// tensors, also for fake ones.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}
#define LLTM_OPERATOR(name) C10_STRINGIZE(LLTM_NAMESPACE) "::" name
ForwardResults call(const c10::TypedOperatorHandle<RecurrenceSignature>& op, const ForwardArguments& given);
BackwardResults call(const c10::TypedOperatorHandle<RecurrenceBackwardSignature>& op,
                     const BackwardArguments& given);

// left @ right + bias: by the operator `product`, or by torch on a GPU.
at::Tensor matrix_product(const at::Tensor& left, const at::Tensor& right,
                          const OptionalTensor& bias = std::nullopt);

// The cell of a name; raises an error for a name that no cell has.
CellKind kind_of(std::string_view cell);

// Calls function(Lltm()), function(Lstm()) or function(Gru()).
template <typename Function>
auto with_cell(std::string_view cell, const Function& function) {
  return with_cell(kind_of(cell), function);
}

// The constants of a cell's policy.
struct CellConstants {
  int64_t gates, saved;
  bool has_cell;
};
CellConstants constants_of(std::string_view cell);

// Raise an error that names the argument, the shape it has and the shape it should have.
void check_recurrence(const ForwardArguments& given);
void check_recurrence_backward(const BackwardArguments& given);
void check_product(const at::Tensor& left, const at::Tensor& right, const OptionalTensor& bias);

// The arguments as kernels read them: of this dtype, and contiguous. Only the rows of the weights may
// have any stride.
ForwardArguments prepare(const ForwardArguments& given, at::ScalarType dtype);
BackwardArguments prepare(const BackwardArguments& given, at::ScalarType dtype);

// Uninitialised results, of the dtype of the arguments.
ForwardResults allocate(const ForwardArguments& given);
BackwardResults allocate(const BackwardArguments& given);

// The numbers of a tensor; null if it is missing or has none.
template <typename number_t>
const number_t* pointer_to(const at::Tensor& tensor) {
  return tensor.numel() ? static_cast<const number_t*>(tensor.const_data_ptr()) : nullptr;
}
template <typename number_t>
const number_t* pointer_to(const OptionalTensor& tensor) {
  return tensor ? pointer_to<number_t>(*tensor) : nullptr;
}
template <typename number_t>
number_t* pointer_to_out(const at::Tensor& tensor) {
  return tensor.numel() ? static_cast<number_t*>(tensor.mutable_data_ptr()) : nullptr;
}

// The arrays of prepared arguments and of results.
template <typename number_t>
ForwardArrays<number_t> arrays_of(const ForwardArguments& given, const ForwardResults& made) {
  return {pointer_to<number_t>(given.x),
          pointer_to<number_t>(given.weights_h),
          given.weights_h.stride(0),
          pointer_to<number_t>(given.bias_h),
          pointer_to<number_t>(given.h0),
          pointer_to<number_t>(given.cell0),
          pointer_to<int64_t>(given.lengths),
          pointer_to_out<number_t>(made.outputs),
          pointer_to_out<number_t>(made.h),
          pointer_to_out<number_t>(made.cell),
          pointer_to_out<number_t>(made.cells),
          pointer_to_out<number_t>(made.z),
          given.reverse};
}

template <typename number_t>
BackwardArrays<number_t> arrays_of(const BackwardArguments& given, const BackwardResults& made) {
  return {pointer_to<number_t>(given.grad_outputs),
          pointer_to<number_t>(given.grad_h),
          pointer_to<number_t>(given.grad_cell),
          pointer_to<number_t>(given.weights_h),
          given.weights_h.stride(0),
          pointer_to<number_t>(given.h0),
          pointer_to<number_t>(given.cell0),
          pointer_to<number_t>(given.outputs),
          pointer_to<number_t>(given.cells),
          pointer_to<number_t>(given.z),
          pointer_to<int64_t>(given.lengths),
          pointer_to_out<number_t>(made.d_z),
          pointer_to_out<number_t>(made.d_h0),
          pointer_to_out<number_t>(made.d_cell0),
          given.reverse};
}
