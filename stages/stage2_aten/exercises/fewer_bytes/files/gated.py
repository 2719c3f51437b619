"""A gated unit: autograd calls forward and backward of csrc/gated.cpp. There is nothing to do here."""

import torch
from torch.autograd.function import once_differentiable

from . import _C


class Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        out, *saved = _C.forward(z)
        ctx.save_for_backward(*saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return _C.backward(grad, list(ctx.saved_tensors))


def gated(z):
    """tanh(z_a) * sigmoid(z_b), (B, S), of the halves of z (B, 2S)."""
    return Gated.apply(z)
