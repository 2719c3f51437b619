"""Functions of the check, some with the mistakes of suspects.py. What they say about themselves is not true."""

import torch


class A(torch.autograd.Function):
    """Wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class B(A):
    """Right."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x.abs()


class C(A):
    """Right."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * -3 * x * x.abs()


class D(A):
    """Right."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x.as_strided(x.shape, (x.size(1), 1)) ** 2


class E(A):
    """Right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3 * x**2)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


class F(A):
    """Right."""

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


class NegativeSlope(RoughSlope):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * -6 * x.abs()


class RowwiseSlope(RoughSlope):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 6 * x.as_strided(x.shape, (x.size(1), 1))


class G(A):
    """Right."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * RoughSlope.apply(x)


class H(A):
    """Right."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * PositiveSlope.apply(x)


class I(A):  # noqa: E742
    """Right."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * RowwiseSlope.apply(x)


class J(A):
    """Right."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * NegativeSlope.apply(x)


class K(torch.autograd.Function):
    """Wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**3).cumsum(0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.flip(0).cumsum(0).flip(0) * 3 * x**2


def trial(name):
    """What the learner's test says about one function."""
    from .verdict import is_right

    suspect = globals()[name]
    return is_right(lambda x: suspect.apply(x))
