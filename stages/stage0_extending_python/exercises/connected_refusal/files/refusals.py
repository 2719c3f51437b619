"""Five Functions that compute tanh(w * x) and refuse second derivatives. Do not change this file."""

import torch
from torch.autograd.function import once_differentiable


def tanh_and_slopes(x, w):
    """tanh(w * x) and its derivatives with respect to x and w."""
    y = torch.tanh(w * x)
    slope = 1 - y * y
    return y, slope * w, slope * x


class Refuse(torch.autograd.Function):
    """The gradients for x and w, whose derivative raises an error.

    Only autograd's graph needs `others`: the node of this Function leads to them, too.
    """

    @staticmethod
    def forward(ctx, grad, slope_x, slope_w, *others):
        return grad * slope_x, grad * slope_w

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("the gradient is once_differentiable: there are no second derivatives")


class Decorated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, slope_x, slope_w = tanh_and_slopes(x, w)
        ctx.save_for_backward(slope_x, slope_w)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        slope_x, slope_w = ctx.saved_tensors
        return grad * slope_x, grad * slope_w


class OfIntermediates(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, slope_x, slope_w = tanh_and_slopes(x, w)
        ctx.save_for_backward(slope_x, slope_w)
        return y

    @staticmethod
    def backward(ctx, grad):
        return Refuse.apply(grad, *ctx.saved_tensors)


class OfInputs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, slope_x, slope_w = tanh_and_slopes(x, w)
        ctx.save_for_backward(slope_x, slope_w, x, w)
        return y

    @staticmethod
    def backward(ctx, grad):
        return Refuse.apply(grad, *ctx.saved_tensors)


class OfOneInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, slope_x, slope_w = tanh_and_slopes(x, w)
        ctx.save_for_backward(slope_x, slope_w, x)
        return y

    @staticmethod
    def backward(ctx, grad):
        return Refuse.apply(grad, *ctx.saved_tensors)


class OfTheResult(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, slope_x, slope_w = tanh_and_slopes(x, w)
        ctx.save_for_backward(slope_x, slope_w, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return Refuse.apply(grad, *ctx.saved_tensors)
