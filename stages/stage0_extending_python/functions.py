"""Small functions with a gradient of their own, each for one thing that `torch.autograd.Function` is for."""

import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        slope = 3 * x * x
        ctx.save_for_backward(x, slope)
        return x * x * x, slope

    @staticmethod
    def backward(ctx, grad_y, grad_slope):
        x, slope = ctx.saved_tensors
        return grad_y * slope + grad_slope * 6 * x


def cube(x):
    """The cube of each element of x, of any shape. The slope that backward needs is kept as a second output, which ties it to the graph."""
    y, _ = Cube.apply(x)
    return y
