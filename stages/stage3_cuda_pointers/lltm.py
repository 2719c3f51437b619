"""The LLTM cell over CUDA kernels: autograd calls forward and backward, and both are in csrc/."""

import torch
from torch.autograd.function import once_differentiable

from . import _C


class LLTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):
        new_h, new_cell, *saved = _C.forward(input, weights, bias, old_h, old_cell)
        ctx.save_for_backward(weights, *saved, new_cell)
        ctx.set_materialize_grads(False)
        return new_h, new_cell

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_h, grad_cell):
        return _C.backward(grad_h, grad_cell, *ctx.saved_tensors, ctx.needs_input_grad)


def lltm(input, weights, bias, old_h, old_cell):
    """One step of the cell.

    Shapes: input (B, I), weights (3S, S+I), bias (3S), old_h (B, S), old_cell (B, S).
    Returns (new_h, new_cell), both (B, S). Raises RuntimeError for arguments that do not fit together.
    """
    return LLTMFunction.apply(input, weights, bias, old_h, old_cell)
