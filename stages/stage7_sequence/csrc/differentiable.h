// The recurrence in torch's own operations: slower than the operators, but autograd can differentiate it as
// often as needed, and torch.func and forward-mode differentiation can transform it.
#pragma once

#include "operators.h"

// Whether an operation on these tensors has to be differentiable: torch.func transforms it, grad mode is on
// and a tensor requires a gradient, or a tensor has a tangent (forward mode). Undefined tensors do not count.
bool is_transformed();
bool has_tangent(at::TensorList tensors);
bool requires_grad(at::TensorList tensors);

// The results of `recurrence`, with what backward needs.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> differentiable_recurrence(
    const at::Tensor& x,            // [T,B,G*S]
    const at::Tensor& weights_h,    // [G*S,S]
    const OptionalTensor& bias_h,   // [G*S]
    const at::Tensor& h0,           // [B,S]
    const OptionalTensor& cell0,    // [B,S]
    const OptionalTensor& lengths,  // [B]
    std::string_view cell, bool reverse);

// The upstream gradients of the results of `recurrence`. Undefined ones count as zero.
struct UpstreamGradients {
  at::Tensor outputs;  // [T,B,S]
  at::Tensor h;        // [B,S]
  at::Tensor cell;     // [B,S]
  at::Tensor cells;    // [T,B,S]
  at::Tensor z;        // [T,B,K*S]
};

// The results of `recurrence_backward`. Unlike that operator, it also takes upstream gradients of cells and
// z: they arrive in a second backward pass, because the first one computed with cells and z.
std::tuple<at::Tensor, at::Tensor, at::Tensor> differentiable_recurrence_backward(
    const UpstreamGradients& grads, const at::Tensor& weights_h, const at::Tensor& h0,
    const at::Tensor& cell0, const at::Tensor& lengths, const at::Tensor& outputs, const at::Tensor& cells,
    const at::Tensor& z, std::string_view cell, bool reverse);
