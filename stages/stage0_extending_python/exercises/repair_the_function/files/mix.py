"""A mixture of two tensors, with a gradient for each."""

import torch


class Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, share):
        ctx.share = share
        return a * share + b * (1 - share)

    @staticmethod
    def backward(ctx, grad):
        # BEGIN SOLUTION: these lines contain three mistakes.
        d_a = grad * ctx.share if ctx.needs_input_grad[0] else None
        d_b = grad * (1 - ctx.share) if ctx.needs_input_grad[1] else None
        return d_a, d_b, None
        # BEGIN STARTER
        # d_b = grad * (1 - ctx.share)
        # d_a = grad.mul_(ctx.share)
        # return d_a, d_b
        # END STARTER
        # END SOLUTION


def mix(a, b, share=0.5):
    """The mixture a * share + b * (1 - share), where a and b have the same shape and share is a number."""
    return Mix.apply(a, b, share)
