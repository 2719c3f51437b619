"""Functions whose derivatives may be wrong. Do not change this file; edit verdict.py."""

import torch


class Sine(torch.autograd.Function):
    """Right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


class Square(torch.autograd.Function):
    """Right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class PositiveOnly(Square):
    """Wrong where x is negative."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x.abs()


class NegativeOnly(Square):
    """Wrong where x is positive."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * -2 * x.abs()


class RowByRow(Square):
    """Wrong where x is not contiguous."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x.as_strided(x.shape, (x.size(1), 1))


class SlopeKept(torch.autograd.Function):
    """Wrong in the second derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.cos())
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


class Off(Sine):
    """Wrong by a ten-thousandth."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * 1.0001


RIGHT, WRONG = (Sine, Square), (PositiveOnly, NegativeOnly, RowByRow, SlopeKept, Off)


def trial(name):
    """What the test says about one function."""
    from .verdict import is_right

    suspect = globals()[name]
    return is_right(lambda x: suspect.apply(x))
