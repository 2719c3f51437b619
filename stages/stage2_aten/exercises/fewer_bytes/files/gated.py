"""A gated unit: autograd calls forward and backward of csrc/gated.cpp. There is nothing to do here."""

import torch

from . import _C


class Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        out, *saved = _C.forward(z)
        ctx.save_for_backward(*saved)
        return out

    @staticmethod
    def backward(ctx, grad):
        # There are no second derivatives. The saved tensors do not lead to z, so an error that a later node raises
        # would not reach every caller. Grad mode is on here if the caller set create_graph=True.
        if torch.is_grad_enabled():
            raise RuntimeError("gated: the gradient is once_differentiable: call it without create_graph=True")
        return _C.backward(grad, list(ctx.saved_tensors))


def gated(z):
    """tanh(z_a) * sigmoid(z_b), (B, S), of the halves of z (B, 2S)."""
    return Gated.apply(z)
