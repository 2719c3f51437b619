"""First derivatives of the cell in the learner's process: with create_graph=True, and of results without gradient."""

import torch


def first_derivatives(*inputs):
    """The gradient of the sum of the cell's results for each input, recorded for a second derivative."""
    from .lltm import lltm

    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    total = sum(result.sum() for result in lltm(*inputs))
    return [gradient.detach() for gradient in torch.autograd.grad(total, inputs, create_graph=True)]


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
