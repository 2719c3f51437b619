"""The pointwise part of an LLTM with peepholes, over the kernels of csrc/."""

import torch

from . import _C


class PeepholeFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, peepholes, old_cell):
        new_h, new_cell, gates = _C.forward(z, peepholes, old_cell)
        ctx.save_for_backward(peepholes, old_cell, gates, new_cell)
        return new_h, new_cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        return PeepholeBackward.apply(grad_h, grad_cell, *ctx.saved_tensors)


class PeepholeBackward(torch.autograd.Function):
    """The gradient, which has no derivative. new_cell, a result, connects its node with every argument."""

    @staticmethod
    def forward(ctx, grad_h, grad_cell, peepholes, old_cell, gates, new_cell):
        d_z, d_old_cell = _C.backward(grad_h, grad_cell, peepholes, old_cell, gates, new_cell)
        d_peepholes = torch.stack([(d_z[:, 0] * old_cell).sum(dim=0), (d_z[:, 1] * new_cell).sum(dim=0)])
        return d_z, d_peepholes, d_old_cell

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("peephole: the gradient is once_differentiable: there are no second derivatives")


def pointwise(z, peepholes, old_cell):
    """z (B, 3, S), peepholes (2, S) and old_cell (B, S), any strides -> (new_h, new_cell), both (B, S)."""
    return PeepholeFunction.apply(z, peepholes, old_cell)
