"""Four Functions for x to the fourth. Do not change this file; write your answers into answers.ini."""

import torch
from torch.autograd.function import once_differentiable


class KeepsX(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**4

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 4 * x**3


class KeepsSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x, square)
        return square * square

    @staticmethod
    def backward(ctx, grad):
        x, square = ctx.saved_tensors
        return grad * 4 * x * square


class KeepsSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(4 * x**3)
        return x**4

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


class Refuses(KeepsSlope):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


def second_derivative(version, squared):
    """The second derivative of version(x), or of its square, at x = 2. Raises RuntimeError if autograd does."""
    x = torch.tensor(2.0, requires_grad=True)
    y = globals()[version].apply(x)
    (first,) = torch.autograd.grad(y * y if squared else y, x, create_graph=True)
    first.backward()
    return x.grad.item()
