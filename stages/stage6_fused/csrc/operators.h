// What the sources of this library share: the namespace of its operators, how they call one another, the
// checks of their arguments, and the cell as it is on every device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>

// TORCH_LIBRARY does not expand macros in its arguments. With these, the namespace can be a macro that
// setup.py defines.
#define EXPAND_TORCH_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

using Cell = std::tuple<at::Tensor, at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                            const at::Tensor&, const at::Tensor&,
                                                            const at::Tensor&);
using CellBackward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
    const std::optional<at::Tensor>&, const std::optional<at::Tensor>&, const at::Tensor&, const at::Tensor&,
    const at::Tensor&, const at::Tensor&, const at::Tensor&, std::array<bool, 5>);
using Pointwise = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&);
using PointwiseBackward = std::tuple<at::Tensor, at::Tensor, at::Tensor>(const std::optional<at::Tensor>&,
                                                                         const std::optional<at::Tensor>&,
                                                                         const at::Tensor&, const at::Tensor&,
                                                                         std::array<bool, 2>);

// An operator of this library, called through torch's dispatcher, which selects the kernel for the given
// tensors, also for fake ones.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}
#define LLTM_OPERATOR(name) C10_STRINGIZE(LLTM_NAMESPACE) "::" name

// Raise an error that names the argument, the shape it has and the shape it should have.
void check_arguments(const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias,
                     const at::Tensor& old_h, const at::Tensor& old_cell);
void check_pointwise(const at::Tensor& z, const at::Tensor& old_cell);
void check_pointwise_backward(const std::optional<at::Tensor>& grad_h,
                              const std::optional<at::Tensor>& grad_cell, const at::Tensor& z,
                              const at::Tensor& new_cell);
// Checks the arguments of cell_backward that check_pointwise_backward does not get.
void check_factors(const at::Tensor& input, const at::Tensor& weights, const at::Tensor& old_h,
                   const at::Tensor& z);

// The cell with ATen's products and the operators for the pointwise part; lltm.cpp has the shapes.
Cell cell;
CellBackward cell_backward;
