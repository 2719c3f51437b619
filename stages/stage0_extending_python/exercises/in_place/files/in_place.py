"""tanh that overwrites its argument."""

import torch


class TanhInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        # BEGIN SOLUTION forward: overwrite x, tell autograd, and save what backward needs.
        x.tanh_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x
        # BEGIN STARTER
        # raise NotImplementedError("TanhInPlace.forward is not written yet")
        # END STARTER
        # END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        # BEGIN SOLUTION backward: the gradient of x as it was before tanh_.
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)
        # BEGIN STARTER
        # raise NotImplementedError("TanhInPlace.backward is not written yet")
        # END STARTER
        # END SOLUTION


def tanh_(x):
    """Overwrites x with tanh(x) and returns it."""
    return TanhInPlace.apply(x)
