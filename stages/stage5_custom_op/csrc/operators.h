// What the sources of this library share: the namespace of its operators, and the checks of their arguments.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

// TORCH_LIBRARY takes a namespace as it is written; through these a macro of setup.py may stand for it.
#define EXPAND_TORCH_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

// Raise an error that names the argument, the shape it has and the shape it should have.
void check_forward(const at::Tensor& z, const at::Tensor& old_cell);
void check_backward(const std::optional<at::Tensor>& grad_h, const std::optional<at::Tensor>& grad_cell,
                    const at::Tensor& gates, const at::Tensor& new_cell);

// The tensors that a kernel for the backward reads and writes; a gradient that never came is one zero, seen
// as (B, S) through strides of zero.
at::Tensor or_zero(const std::optional<at::Tensor>& grad, const at::Tensor& like);
