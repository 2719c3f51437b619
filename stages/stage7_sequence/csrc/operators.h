// What the sources of this library share: the namespace of its operators, how they call one another, the
// checks of their arguments, and the choice of a cell by its name.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <optional>
#include <string_view>
#include <tuple>

#include "cells.h"

// TORCH_LIBRARY does not expand macros in its arguments. With these, the namespace can be a macro that
// setup.py defines.
#define EXPAND_TORCH_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

using OptionalTensor = std::optional<at::Tensor>;
using Recurrence = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
    const at::Tensor& x, const at::Tensor& weights_h, const OptionalTensor& bias_h, const at::Tensor& h0,
    const OptionalTensor& cell0, const OptionalTensor& lengths, std::string_view cell, bool reverse,
    std::string_view rung, bool save);
using RecurrenceBackward = std::tuple<at::Tensor, at::Tensor, at::Tensor>(
    const OptionalTensor& grad_outputs, const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
    const at::Tensor& weights_h, const at::Tensor& h0, const OptionalTensor& cell0,
    const OptionalTensor& lengths, const at::Tensor& outputs, const at::Tensor& cells, const at::Tensor& z,
    std::string_view cell, bool reverse, std::string_view rung);

using Product = at::Tensor(const at::Tensor& left, const at::Tensor& right, const OptionalTensor& bias);

// An operator of this library, called through torch's dispatcher, which selects the kernel for the given
// tensors, also for fake ones.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}
#define LLTM_OPERATOR(name) C10_STRINGIZE(LLTM_NAMESPACE) "::" name

// Calls function(Lltm()), function(Lstm()) or function(Gru()).
template <typename Function>
auto with_cell(std::string_view cell, const Function& function) {
  if (cell == "lltm") return function(Lltm());
  if (cell == "lstm") return function(Lstm());
  TORCH_CHECK(cell == "gru", "lltm: cell is '", cell, "', expected 'lltm', 'lstm' or 'gru'");
  return function(Gru());
}

// The constants of a cell's policy.
struct CellConstants {
  int64_t gates, saved;
  bool has_cell;
};
CellConstants constants_of(std::string_view cell);

// left @ right + bias: by the operator `product`, or by torch on a GPU.
at::Tensor matrix_product(const at::Tensor& left, const at::Tensor& right,
                          const OptionalTensor& bias = std::nullopt);

// Raise an error that names the argument, the shape it has and the shape it should have.
void check_recurrence(const at::Tensor& x, const at::Tensor& weights_h, const OptionalTensor& bias_h,
                      const at::Tensor& h0, const OptionalTensor& cell0, const OptionalTensor& lengths,
                      std::string_view cell);
void check_recurrence_backward(const OptionalTensor& grad_outputs, const OptionalTensor& grad_h,
                               const OptionalTensor& grad_cell, const at::Tensor& weights_h,
                               const at::Tensor& h0, const OptionalTensor& cell0,
                               const OptionalTensor& lengths, const at::Tensor& outputs,
                               const at::Tensor& cells, const at::Tensor& z, std::string_view cell);
void check_product(const at::Tensor& left, const at::Tensor& right, const OptionalTensor& bias);
