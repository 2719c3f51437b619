"""Functions of the check, some with the mistakes of suspects.py, which say nothing about themselves."""

import torch


class A(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class B(A):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x.abs()


class C(A):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * -3 * x * x.abs()


class D(A):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x.as_strided(x.shape, (x.size(1), 1)) ** 2


class E(A):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3 * x**2)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


class F(A):
    @staticmethod
    def backward(ctx, grad):
        return A.backward(ctx, grad) * 1.0001


class RoughSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x**2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 6 * x * 1.0001


class PositiveSlope(RoughSlope):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 6 * x.abs()


class G(A):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * RoughSlope.apply(x)


class H(A):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * PositiveSlope.apply(x)


def trial(name):
    """What the learner's test says about one function."""
    from .verdict import is_right

    apply = globals()[name].apply
    return is_right(lambda x: apply(x))
