"""Small functions with their own gradients, each an example of one use of `torch.autograd.Function`."""

import numpy
import torch
import torch.nn.functional as F


class Interp(torch.autograd.Function):
    # Written in two parts: forward computes the result, and setup_context saves what backward needs.
    @staticmethod
    def forward(x, knots, values):
        y = numpy.interp(x.numpy(), knots, values)  # autograd does not see this call
        return torch.as_tensor(y, dtype=x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.knots, ctx.values = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        slopes = numpy.diff(ctx.values) / numpy.diff(ctx.knots)
        slopes = numpy.concatenate([[0.0], slopes, [0.0]])  # outside the knots, the function is constant
        slope = slopes[numpy.searchsorted(ctx.knots, x.detach().numpy())]
        return grad_y * torch.as_tensor(slope, dtype=x.dtype), None, None


def interp(x, knots, values):
    """The line through the points (knots, values) at each element of x, a floating-point CPU tensor of any shape.

    `knots` and `values` are lists of numbers, equally long, and the knots increase. They have no gradient.
    Raises RuntimeError for any other arguments.
    """
    if not x.is_floating_point():
        raise RuntimeError(f"interp: x has dtype {x.dtype}, expected a floating-point dtype")
    if not len(knots) == len(values) >= 2:
        raise RuntimeError(f"interp: {len(knots)} knots and {len(values)} values, expected equally many, two or more")
    if not (numpy.diff(knots) > 0).all():
        raise RuntimeError(f"interp: knots are {list(knots)}, expected increasing numbers")
    return Interp.apply(x, knots, values)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta  # a number, not a tensor, so an attribute of ctx
        return F.silu(beta * x) / beta

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return SwishBackward.apply(grad_y, x, ctx.beta), None


class SwishBackward(torch.autograd.Function):
    # The gradient as a Function of its own: its node in the graph leads to grad_y and to x, so every attempt to
    # differentiate it raises the error. silu_backward has no derivative.
    @staticmethod
    def forward(ctx, grad_y, x, beta):
        return torch.ops.aten.silu_backward(grad_y, beta * x)

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("swish: the gradient is once_differentiable: there are no second derivatives")


def swish(x, beta=1.0):
    """The product x * sigmoid(beta * x), of x's shape. Saves only x for backward."""
    return Swish.apply(x, beta)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.set_materialize_grads(False)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_y):
        if grad_y is None:  # y was not used, so there is nothing to compute
            return None, None
        return grad_y * ctx.factor, None


def scale(x, factor):
    """The product x * factor, where `factor` is a number."""
    return Scale.apply(x, factor)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)  # the output: exp is its own derivative
        return x

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y * y


def exp_(x):
    """Overwrites x with exp(x) and returns it. Raises RuntimeError for a leaf that requires a gradient."""
    return Exp.apply(x)


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, high):
        inside = ((x >= low) & (x <= high)).to(x.dtype)
        ctx.mark_non_differentiable(inside)
        ctx.save_for_backward(inside)
        return x.clamp(low, high), inside

    @staticmethod
    def backward(ctx, grad_y, grad_inside):
        (inside,) = ctx.saved_tensors
        return grad_y * inside, None, None


def clip(x, low, high):
    """The elements of x, clamped to [low, high], and a mask of x's shape and dtype: 1 where x was inside, else 0."""
    return Clip.apply(x, low, high)


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
    """The cube of each element of x. Its derivative is computed once; as an output, it is part of the graph."""
    y, _ = Cube.apply(x)
    return y
