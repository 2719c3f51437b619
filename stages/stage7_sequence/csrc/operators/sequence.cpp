// The operators: schemas, checks of the arguments, shapes of the results, and the sequences of the three
// cells, which are one product for all inputs and the recurrence.
#include <Python.h>

#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "operators.h"

using at::Tensor;

// G: the gates of a cell, K: the numbers of each unit that backward needs (kGates and kSaved in cells.h).
//
// recurrence: x (T,B,G*S) is the input part of the gates, for all steps. weights_h (G*S,S) and bias_h (G*S)
// make up the recurrent part. lengths (B): past its length, a row keeps its state. outputs (T,B,S): h after
// each step. h and cell (B,S): the last state. cells (T,B,S) and z (T,B,K*S): what recurrence_backward needs,
// if `save`. recurrence_backward: d_z (T,B,K*S) contains the gradients of the input parts and of the
// recurrent parts. Tensors that a cell does not have or that are not saved have shape (0).
EXPAND_TORCH_LIBRARY(LLTM_NAMESPACE, m) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  m.def(
      "lltm_sequence(Tensor inputs, Tensor weights, Tensor bias, Tensor h0, Tensor cell0,"
      " Tensor? lengths=None, bool reverse=False, str rung='') -> (Tensor outputs, Tensor h, Tensor cell)",
      tags);
  m.def(
      "lstm_sequence(Tensor inputs, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh,"
      " Tensor h0, Tensor cell0, Tensor? lengths=None, bool reverse=False, str rung='')"
      " -> (Tensor outputs, Tensor h, Tensor cell)",
      tags);
  m.def(
      "gru_sequence(Tensor inputs, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh,"
      " Tensor h0, Tensor? lengths=None, bool reverse=False, str rung='') -> (Tensor outputs, Tensor h)",
      tags);
  const std::string recurrence =
      "recurrence(Tensor x, Tensor weights_h, Tensor? bias_h, Tensor h0, Tensor? cell0, Tensor? lengths,"
      " str cell, bool reverse, str rung, bool save)"
      " -> (Tensor outputs, Tensor h, Tensor cell, Tensor cells, Tensor z)";
  const std::string backward =
      "recurrence_backward(Tensor? grad_outputs, Tensor? grad_h, Tensor? grad_cell, Tensor weights_h,"
      " Tensor h0, Tensor? cell0, Tensor? lengths, Tensor outputs, Tensor cells, Tensor z, str cell,"
      " bool reverse, str rung) -> (Tensor d_z, Tensor d_h0, Tensor d_cell0)";
  m.def(recurrence.c_str(), tags);
  m.def(backward.c_str(), tags);
  // The same two as CUDA graphs; graphs.py implements them.
  m.def(("graphed_" + recurrence).c_str());
  m.def(("graphed_" + backward).c_str());
  // left (M,K) @ right (K,N) + bias (N), for tensors on a CPU.
  m.def("product(Tensor left, Tensor right, Tensor? bias=None) -> Tensor", tags);
  // Which rung runs for tensors of the dtype and on the device of `like`, and why.
  m.def("choose_rung(Tensor like, str cell, int T, int B, int S, bool backward) -> (str rung, str reason)",
        tags);
}

CellKind kind_of(std::string_view cell) {
  if (cell == "lltm") return CellKind::kLltm;
  if (cell == "lstm") return CellKind::kLstm;
  TORCH_CHECK(cell == "gru", "lltm: cell is '", cell, "', expected 'lltm', 'lstm' or 'gru'");
  return CellKind::kGru;
}

CellConstants constants_of(std::string_view cell) {
  return with_cell(cell, [](auto policy) {
    using Cell = decltype(policy);
    return CellConstants{Cell::kGates, Cell::kSaved, Cell::kHasCell};
  });
}

// Checks of the arguments. Sizes are SymInts, because under torch.compile they may be unknown.
// ------------------------

// The tensors that the shapes of all others follow from, in the words of a message.
template <typename... Words>
struct Origin {
  const Tensor& first;
  const char* first_name;
  std::tuple<Words...> words;

  void check(const char* name, const Tensor& tensor, c10::SymIntArrayRef shape) const {
    check_placed(name, tensor);
    TORCH_CHECK(tensor.scalar_type() == first.scalar_type(), "lltm: ", name, " has dtype ",
                tensor.scalar_type(), ", but ", first_name, " has ", first.scalar_type());
    check_shape(name, tensor, shape);
  }

  void check(const char* name, const OptionalTensor& tensor, c10::SymIntArrayRef shape) const {
    if (tensor) check(name, *tensor, shape);
  }

  void check_lengths(const OptionalTensor& lengths, const c10::SymInt& B) const {
    if (!lengths) return;
    check_placed("lengths", *lengths);
    TORCH_CHECK(lengths->scalar_type() == at::kLong, "lltm: lengths has dtype ", lengths->scalar_type(),
                ", expected Long (int64)");
    check_shape("lengths", *lengths, {B});
  }

 private:
  void check_placed(const char* name, const Tensor& tensor) const {
    TORCH_CHECK(tensor.device() == first.device(), "lltm: ", name, " is on ", tensor.device(), ", but ",
                first_name, " is on ", first.device());
  }

  void check_shape(const char* name, const Tensor& tensor, c10::SymIntArrayRef shape) const {
    std::apply(
        [&](const auto&... word) {
          TORCH_CHECK(tensor.sym_sizes() == shape, "lltm: ", name, " has shape ", tensor.sym_sizes(),
                      ", but ", word..., " for ", shape);
        },
        words);
  }
};

template <typename... Words>
Origin<Words...> origin(const Tensor& first, const char* first_name, Words... words) {
  return {first, first_name, {words...}};
}

void check_floating(const char* name, const Tensor& tensor) {
  TORCH_CHECK(tensor.is_floating_point(), "lltm: ", name, " has dtype ", tensor.scalar_type(),
              ", expected a floating-point dtype");
}

void check_dimensions(const char* name, const Tensor& tensor, int64_t dimensions, const char* expected) {
  TORCH_CHECK(tensor.dim() == dimensions, "lltm: ", name, " has shape ", tensor.sym_sizes(), ", expected ",
              dimensions == 3 ? "three" : "two", " dimensions: ", expected);
}

void check_cell0(const OptionalTensor& cell0, std::string_view cell) {
  const bool has_cell = constants_of(cell).has_cell;
  TORCH_CHECK(cell0.has_value() == has_cell, "lltm: cell0 is ", cell0 ? "given" : "None", ", but the cell '",
              cell, has_cell ? "' needs one" : "' has no state besides h");
}

void check_recurrence(const ForwardArguments& given) {
  const Tensor &x = given.x, &weights_h = given.weights_h;
  const int64_t G = constants_of(given.cell).gates;
  check_floating("x", x);
  check_dimensions("x", x, 3, "(T, B, G*S)");
  check_dimensions("weights_h", weights_h, 2, "(G*S, S)");
  const c10::SymInt B = x.sym_size(1), S = weights_h.sym_size(1);
  const auto from = origin(x, "x", "x of shape ", x.sym_sizes(), ", weights_h of shape ",
                           weights_h.sym_sizes(), " and the ", G, " gates of '", given.cell, "' call");
  from.check("x", x, {x.sym_size(0), B, G * S});
  from.check("weights_h", weights_h, {G * S, S});
  from.check("bias_h", given.bias_h, {G * S});
  from.check("h0", given.h0, {B, S});
  check_cell0(given.cell0, given.cell);
  from.check("cell0", given.cell0, {B, S});
  from.check_lengths(given.lengths, B);
}

void check_recurrence_backward(const BackwardArguments& given) {
  const Tensor &z = given.z, &weights_h = given.weights_h;
  const auto [G, K, has_cell] = constants_of(given.cell);
  check_floating("z", z);
  check_dimensions("z", z, 3, "(T, B, K*S)");
  check_dimensions("weights_h", weights_h, 2, "(G*S, S)");
  const c10::SymInt T = z.sym_size(0), B = z.sym_size(1), S = weights_h.sym_size(1), zero = 0;
  const auto from = origin(z, "z", "z of shape ", z.sym_sizes(), ", weights_h of shape ",
                           weights_h.sym_sizes(), " and the cell '", given.cell, "' call");
  from.check("z", z, {T, B, K * S});
  from.check("weights_h", weights_h, {G * S, S});
  from.check("h0", given.h0, {B, S});
  check_cell0(given.cell0, given.cell);
  from.check("cell0", given.cell0, {B, S});
  from.check_lengths(given.lengths, B);
  from.check("outputs", given.outputs, {T, B, S});
  if (has_cell)
    from.check("cells", given.cells, {T, B, S});
  else
    from.check("cells", given.cells, {zero});
  from.check("grad_outputs", given.grad_outputs, {T, B, S});
  from.check("grad_h", given.grad_h, {B, S});
  if (has_cell) from.check("grad_cell", given.grad_cell, {B, S});
}

void check_product(const Tensor& left, const Tensor& right, const OptionalTensor& bias) {
  check_floating("left", left);
  check_dimensions("left", left, 2, "(M, K)");
  check_dimensions("right", right, 2, "(K, N)");
  const auto from = origin(left, "left", "left of shape ", left.sym_sizes(), " calls");
  from.check("right", right, {left.sym_size(1), right.sym_size(1)});
  from.check("bias", bias, {right.sym_size(1)});
}

// What kernels get and make
// -------------------------

Tensor contiguous(const Tensor& tensor, at::ScalarType dtype) {
  return (tensor.scalar_type() == dtype ? tensor : tensor.to(dtype)).contiguous();
}

OptionalTensor contiguous(const OptionalTensor& tensor, at::ScalarType dtype) {
  return tensor ? OptionalTensor(contiguous(*tensor, dtype)) : std::nullopt;
}

// Kernels read rows of weights with any stride between them, but contiguous numbers in each.
Tensor in_rows(const Tensor& weights, at::ScalarType dtype) {
  const bool has_rows = weights.stride(1) == 1 || weights.size(1) < 2;
  return has_rows && weights.scalar_type() == dtype ? weights : contiguous(weights, dtype);
}

ForwardArguments prepare(const ForwardArguments& given, at::ScalarType dtype) {
  return {contiguous(given.x, dtype),
          in_rows(given.weights_h, dtype),
          contiguous(given.bias_h, dtype),
          contiguous(given.h0, dtype),
          contiguous(given.cell0, dtype),
          contiguous(given.lengths, at::kLong),
          given.cell,
          given.reverse,
          given.rung,
          given.save};
}

BackwardArguments prepare(const BackwardArguments& given, at::ScalarType dtype) {
  return {contiguous(given.grad_outputs, dtype),
          contiguous(given.grad_h, dtype),
          contiguous(given.grad_cell, dtype),
          in_rows(given.weights_h, dtype),
          contiguous(given.h0, dtype),
          contiguous(given.cell0, dtype),
          contiguous(given.lengths, at::kLong),
          contiguous(given.outputs, dtype),
          contiguous(given.cells, dtype),
          contiguous(given.z, dtype),
          given.cell,
          given.reverse,
          given.rung};
}

ForwardResults allocate(const ForwardArguments& given) {
  const auto [G, K, has_cell] = constants_of(given.cell);
  const int64_t T = given.x.size(0), B = given.h0.size(0), S = given.h0.size(1);
  auto empty_if = [&](bool wanted, at::IntArrayRef shape) {
    return at::empty(wanted ? shape : at::IntArrayRef{0}, given.x.options());
  };
  return {empty_if(true, {T, B, S}), empty_if(true, {B, S}), empty_if(has_cell, {B, S}),
          empty_if(given.save && has_cell, {T, B, S}), empty_if(given.save, {T, B, K * S})};
}

BackwardResults allocate(const BackwardArguments& given) {
  const auto options = given.z.options();
  return {at::empty(given.z.sizes(), options), at::empty(given.h0.sizes(), options),
          at::empty(given.cell0 ? given.h0.sizes() : at::IntArrayRef{0}, options)};
}

// The shapes, dtypes and strides of the results. torch.compile, torch.export and the meta device need them,
// because they run an operator without data.
// ---------------------------------------------------------------------------------

ForwardResults recurrence_meta(const ForwardArguments& given) {
  check_recurrence(given);
  const auto [G, K, has_cell] = constants_of(given.cell);
  const c10::SymInt T = given.x.sym_size(0), B = given.h0.sym_size(0), S = given.h0.sym_size(1), zero = 0;
  auto empty_if = [&](bool wanted, c10::SymIntArrayRef shape) {
    return at::empty_symint(wanted ? shape : c10::SymIntArrayRef(zero), given.x.options());
  };
  return {empty_if(true, {T, B, S}), empty_if(true, {B, S}), empty_if(has_cell, {B, S}),
          empty_if(given.save && has_cell, {T, B, S}), empty_if(given.save, {T, B, K * S})};
}

BackwardResults recurrence_backward_meta(const BackwardArguments& given) {
  check_recurrence_backward(given);
  const c10::SymInt zero = 0;
  const auto state = given.h0.sym_sizes();
  auto empty = [&](c10::SymIntArrayRef shape) { return at::empty_symint(shape, given.z.options()); };
  return {empty(given.z.sym_sizes()), empty(state), empty(given.cell0 ? state : c10::SymIntArrayRef(zero))};
}

Tensor product_meta(const Tensor& left, const Tensor& right, const OptionalTensor& bias) {
  check_product(left, right, bias);
  return at::empty_symint({left.sym_size(0), right.sym_size(1)}, left.options());
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, Meta, m) {
  m.impl("recurrence", as_recurrence<&recurrence_meta>());
  m.impl("recurrence_backward", as_recurrence_backward<&recurrence_backward_meta>());
  m.impl("product", &product_meta);
}

// Calls of the operators
// ----------------------

ForwardResults call(const c10::TypedOperatorHandle<RecurrenceSignature>& op, const ForwardArguments& given) {
  auto [outputs, h, cell, cells, z] =
      op.call(given.x, given.weights_h, given.bias_h, given.h0, given.cell0, given.lengths, given.cell,
              given.reverse, given.rung, given.save);
  return {outputs, h, cell, cells, z};
}

BackwardResults call(const c10::TypedOperatorHandle<RecurrenceBackwardSignature>& op,
                     const BackwardArguments& given) {
  auto [d_z, d_h0, d_cell0] =
      op.call(given.grad_outputs, given.grad_h, given.grad_cell, given.weights_h, given.h0, given.cell0,
              given.lengths, given.outputs, given.cells, given.z, given.cell, given.reverse, given.rung);
  return {d_z, d_h0, d_cell0};
}

Tensor matrix_product(const Tensor& left, const Tensor& right, const OptionalTensor& bias) {
  static const auto product = find_operator<ProductSignature>(LLTM_OPERATOR("product"));
  if (!left.is_cuda()) return product.call(left, right, bias);
  return bias ? at::addmm(*bias, left, right) : left.mm(right);
}

// The sequences of the cells
// --------------------------

// The input parts of the gates for all steps: inputs (T,B,I), weights (G*S,I), bias (G*S).
Tensor input_parts(const Tensor& inputs, const Tensor& weights, const OptionalTensor& bias) {
  const auto shape = inputs.sym_sizes();
  return matrix_product(inputs.flatten(0, 1), weights.t(), bias)
      .view_symint({shape[0], shape[1], weights.sym_size(0)});
}

// The outputs and the last state.
std::tuple<Tensor, Tensor, Tensor> run_recurrence(const ForwardArguments& given) {
  static const auto recurrence = find_operator<RecurrenceSignature>(LLTM_OPERATOR("recurrence"));
  const ForwardResults results = call(recurrence, given);
  return {results.outputs, results.h, results.cell};
}

std::tuple<Tensor, Tensor, Tensor> lltm_sequence(const Tensor& inputs,           // [T,B,I]
                                                 const Tensor& weights,          // [3S,S+I]
                                                 const Tensor& bias,             // [3S]
                                                 const Tensor& h0,               // [B,S]
                                                 const Tensor& cell0,            // [B,S]
                                                 const OptionalTensor& lengths,  // [B]
                                                 bool reverse, std::string_view rung) {
  check_floating("inputs", inputs);
  check_dimensions("inputs", inputs, 3, "(T, B, I)");
  check_dimensions("weights", weights, 2, "(3S, S+I)");
  const c10::SymInt B = inputs.sym_size(1), I = inputs.sym_size(2), S = weights.sym_size(0) / 3;
  const auto from = origin(inputs, "inputs", "weights of shape ", weights.sym_sizes(),
                           " and inputs of shape ", inputs.sym_sizes(), " call");
  from.check("weights", weights, {3 * S, S + I});
  from.check("bias", bias, {3 * S});
  from.check("h0", h0, {B, S});
  from.check("cell0", cell0, {B, S});
  from.check_lengths(lengths, B);

  const auto columns = weights.split_with_sizes_symint({S, I}, 1);  // of h and of the inputs
  return run_recurrence({input_parts(inputs, columns[1], bias), columns[0], std::nullopt, h0, cell0, lengths,
                         "lltm", reverse, rung, /*save=*/false});
}

// Checks what the sequences of torch's cells have in common. `expected` is the shape of weight_ih in words.
void check_sequence(const Tensor& inputs, const Tensor& weight_ih, const Tensor& weight_hh,
                    const OptionalTensor& bias_ih, const OptionalTensor& bias_hh, const Tensor& h0,
                    const OptionalTensor& cell0, const OptionalTensor& lengths, std::string_view cell) {
  const int64_t G = constants_of(cell).gates;
  check_floating("inputs", inputs);
  check_dimensions("inputs", inputs, 3, "(T, B, I)");
  check_dimensions("weight_hh", weight_hh, 2, G == 4 ? "(4S, S)" : "(3S, S)");
  const c10::SymInt B = inputs.sym_size(1), I = inputs.sym_size(2), S = weight_hh.sym_size(1);
  const auto from = origin(inputs, "inputs", "weight_hh of shape ", weight_hh.sym_sizes(),
                           " and inputs of shape ", inputs.sym_sizes(), " call");
  from.check("weight_hh", weight_hh, {G * S, S});
  from.check("weight_ih", weight_ih, {G * S, I});
  from.check("bias_ih", bias_ih, {G * S});
  from.check("bias_hh", bias_hh, {G * S});
  from.check("h0", h0, {B, S});
  from.check("cell0", cell0, {B, S});
  from.check_lengths(lengths, B);
}

std::tuple<Tensor, Tensor, Tensor> lstm_sequence(const Tensor& inputs,           // [T,B,I]
                                                 const Tensor& weight_ih,        // [4S,I]
                                                 const Tensor& weight_hh,        // [4S,S]
                                                 const OptionalTensor& bias_ih,  // [4S]
                                                 const OptionalTensor& bias_hh,  // [4S]
                                                 const Tensor& h0,               // [B,S]
                                                 const Tensor& cell0,            // [B,S]
                                                 const OptionalTensor& lengths,  // [B]
                                                 bool reverse, std::string_view rung) {
  check_sequence(inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, cell0, lengths, "lstm");
  const OptionalTensor bias = bias_ih && bias_hh ? OptionalTensor(at::add(*bias_ih, *bias_hh))
                              : bias_ih          ? bias_ih
                                                 : bias_hh;
  return run_recurrence({input_parts(inputs, weight_ih, bias), weight_hh, std::nullopt, h0, cell0, lengths,
                         "lstm", reverse, rung, /*save=*/false});
}

std::tuple<Tensor, Tensor> gru_sequence(const Tensor& inputs,           // [T,B,I]
                                        const Tensor& weight_ih,        // [3S,I]
                                        const Tensor& weight_hh,        // [3S,S]
                                        const OptionalTensor& bias_ih,  // [3S]
                                        const OptionalTensor& bias_hh,  // [3S]
                                        const Tensor& h0,               // [B,S]
                                        const OptionalTensor& lengths,  // [B]
                                        bool reverse, std::string_view rung) {
  check_sequence(inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, std::nullopt, lengths, "gru");
  // The reset gate multiplies the recurrent part of the candidate with its bias, so this bias stays separate.
  const auto [outputs, h, cell] =
      run_recurrence({input_parts(inputs, weight_ih, bias_ih), weight_hh, bias_hh, h0, std::nullopt, lengths,
                      "gru", reverse, rung, /*save=*/false});
  return {outputs, h};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CompositeImplicitAutograd, m) {
  m.impl("lltm_sequence", &lltm_sequence);
  m.impl("lstm_sequence", &lstm_sequence);
  m.impl("gru_sequence", &gru_sequence);
}

// `from . import _C` loads this library, which registers the operators; _C.NAMESPACE is their namespace.
PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The operators of the sequences.", -1,
                                   nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddStringConstant(module, "NAMESPACE", C10_STRINGIZE(LLTM_NAMESPACE));
  return module;
}
