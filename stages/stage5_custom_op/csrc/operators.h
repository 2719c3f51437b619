// What the sources of this library share: the namespace of its operators, and the checks of their arguments.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

// TORCH_LIBRARY does not expand macros in its arguments. With these, the namespace can be a macro that
// setup.py defines.
#define EXPAND_TORCH_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

// Raise an error that names the argument, the shape it has and the shape it should have.
void check_forward(const at::Tensor& z, const at::Tensor& old_cell);
void check_backward(const std::optional<at::Tensor>& grad_h, const std::optional<at::Tensor>& grad_cell,
                    const at::Tensor& gates, const at::Tensor& new_cell);

// The gradient that a backward kernel reads. A missing gradient is a single zero that strides of zero expand
// to (B, S).
at::Tensor or_zero(const std::optional<at::Tensor>& grad, const at::Tensor& like);
