// What the sources of this library share. Every header it includes is either torch's stable ABI
// (torch/csrc/stable) or needs no libtorch at all (torch/headeronly).
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch.h>
#include <torch/headeronly/core/TensorAccessor.h>

#include <optional>
#include <tuple>
#include <type_traits>

// STABLE_TORCH_LIBRARY does not expand macros in its arguments. With these, the namespace can be a macro that
// setup.py defines.
#define EXPAND_TORCH_LIBRARY(name, m) STABLE_TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) STABLE_TORCH_LIBRARY_IMPL(name, key, m)

// Like AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, ...), but without libtorch.
// clang-format off
#define DISPATCH_FLOATING_TYPES(type, name, ...)                                    \
  THO_DISPATCH_SWITCH(type, name,                                                   \
    THO_DISPATCH_CASE(torch::headeronly::ScalarType::Double, __VA_ARGS__)           \
    THO_DISPATCH_CASE(torch::headeronly::ScalarType::Float, __VA_ARGS__)            \
    THO_DISPATCH_CASE(torch::headeronly::ScalarType::Half, __VA_ARGS__)             \
    THO_DISPATCH_CASE(torch::headeronly::ScalarType::BFloat16, __VA_ARGS__))
// clang-format on

// Like at::opmath_type: half and bfloat16 are storage types, and their arithmetic is in float.
template <typename scalar_t>
using math_type = std::conditional_t<std::is_same_v<scalar_t, double>, double, float>;

// The data pointer of a tensor; const for a const type.
template <typename scalar_t>
scalar_t* data(const torch::stable::Tensor& tensor) {
  if constexpr (std::is_const_v<scalar_t>) {
    return tensor.const_data_ptr<std::remove_const_t<scalar_t>>();
  } else {
    return tensor.mutable_data_ptr<scalar_t>();
  }
}

// Raise an error that names the argument, the shape it has and the shape it should have.
void check_forward(const torch::stable::Tensor& z, const torch::stable::Tensor& old_cell);
void check_backward(const std::optional<torch::stable::Tensor>& grad_h,
                    const std::optional<torch::stable::Tensor>& grad_cell, const torch::stable::Tensor& gates,
                    const torch::stable::Tensor& new_cell);

// A missing gradient is a single zero that strides of zero expand to (B, S).
torch::stable::Tensor or_zero(const std::optional<torch::stable::Tensor>& grad,
                              const torch::stable::Tensor& like);
