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
ForwardResults differentiable_recurrence(const ForwardArguments& given);

// The results of `recurrence_backward`. Unlike that operator, it also takes upstream gradients of cells and
// z: they arrive in a second backward pass, because the first one computed with cells and z. Undefined ones
// count as zero.
BackwardResults differentiable_recurrence_backward(const BackwardArguments& given,
                                                   const at::Tensor& grad_cells,  // [T,B,S]
                                                   const at::Tensor& grad_z);     // [T,B,K*S]
