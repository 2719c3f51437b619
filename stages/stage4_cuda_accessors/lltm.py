"""The LLTM cell over CUDA kernels: autograd calls forward and backward, and both are in csrc/."""

import torch

from . import _C


class LLTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):
        new_h, new_cell, *saved = _C.forward(input, weights, bias, old_h, old_cell)
        ctx.save_for_backward(weights, *saved, new_cell)
        ctx.set_materialize_grads(False)
        return new_h, new_cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        # Grad mode is on here if the caller set create_graph=True, in order to differentiate the gradient.
        gradient = LLTMBackward.apply if torch.is_grad_enabled() else _C.backward
        return gradient(grad_h, grad_cell, *ctx.saved_tensors, ctx.needs_input_grad)


class LLTMBackward(torch.autograd.Function):
    """The gradient, which has no derivative: a second derivative, by whatever path, raises an error.

    In autograd's graph, this node leads to all that the gradient depends on: to the upstream gradients, and by way of
    new_cell, which is a result of LLTMFunction, to every argument of the cell.
    """

    @staticmethod
    def forward(ctx, *arguments):
        return _C.backward(*arguments)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("lltm: the gradient is once_differentiable: there are no second derivatives")


def lltm(input, weights, bias, old_h, old_cell):
    """One step of the cell.

    Shapes: input (B, I), weights (3S, S+I), bias (3S), old_h (B, S), old_cell (B, S).
    Returns (new_h, new_cell), both (B, S). Raises RuntimeError for arguments that do not fit together.
    """
    return LLTMFunction.apply(input, weights, bias, old_h, old_cell)
