"""Your predictions, and a Function that refuses every second derivative."""

import torch

from .refusals import Refuse, tanh_and_slopes


def predictions():
    """What torch.autograd.grad(loss, x) and torch.autograd.grad(loss, w) do: "refused" or "wrong"."""
    return {
        # BEGIN SOLUTION predictions: replace each question mark by refused or wrong.
        "Decorated": {"x": "wrong", "w": "wrong"},
        "OfIntermediates": {"x": "wrong", "w": "wrong"},
        "OfInputs": {"x": "refused", "w": "refused"},
        "OfOneInput": {"x": "refused", "w": "wrong"},
        "OfTheResult": {"x": "refused", "w": "refused"},
        # BEGIN STARTER
        # "Decorated": {"x": "?", "w": "?"},
        # "OfIntermediates": {"x": "?", "w": "?"},
        # "OfInputs": {"x": "?", "w": "?"},
        # "OfOneInput": {"x": "?", "w": "?"},
        # "OfTheResult": {"x": "?", "w": "?"},
        # END STARTER
        # END SOLUTION
    }


class Repaired(torch.autograd.Function):
    # BEGIN SOLUTION repaired: no second derivative may be silently wrong, for any pair of arguments.
    @staticmethod
    def forward(ctx, x, w):
        y, slope_x, slope_w = tanh_and_slopes(x, w)
        ctx.save_for_backward(slope_x, slope_w, y)
        return y

    # BEGIN STARTER
    # @staticmethod
    # def forward(ctx, x, w):
    #     y, slope_x, slope_w = tanh_and_slopes(x, w)
    #     ctx.save_for_backward(slope_x, slope_w, x)
    #     return y
    #
    # END STARTER
    # END SOLUTION
    @staticmethod
    def backward(ctx, grad):
        return Refuse.apply(grad, *ctx.saved_tensors)
