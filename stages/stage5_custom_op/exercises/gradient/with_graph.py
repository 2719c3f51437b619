"""Derivatives in the learner's process: first ones with create_graph=True or of results without gradient, and second
ones of the operator of the backward."""

import torch


def first_derivatives(*inputs):
    """The gradient of the sum of the cell's results for each input, recorded for a second derivative."""
    from .lltm import lltm

    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    total = sum(result.sum() for result in lltm(*inputs))
    return [gradient.detach() for gradient in torch.autograd.grad(total, inputs, create_graph=True)]


def derivative_of_backward(z, old_cell):
    """Asks pointwise_backward itself for a gradient, without pointwise."""
    from . import _C, lltm  # noqa: F401

    operators = getattr(torch.ops, _C.NAMESPACE)
    _, new_cell, gates = operators.pointwise(z, old_cell)
    gradients = [torch.ones_like(new_cell, requires_grad=True) for _ in range(2)]
    d_z, _ = operators.pointwise_backward(*gradients, gates, new_cell)
    torch.autograd.grad(d_z.sum(), gradients, allow_unused=True)


class Stop(torch.autograd.Function):
    """The identity, through which no gradient comes back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return None


def of_stopped(*inputs):
    """The gradients of the inputs where neither result of the cell has one."""
    from .lltm import lltm

    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    total = sum(Stop.apply(result).sum() for result in lltm(*inputs))
    return torch.autograd.grad(total, inputs, allow_unused=True)
