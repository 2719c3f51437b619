"""First derivatives with create_graph=True, in the learner's process."""

import torch


def first_derivatives(*inputs):
    """The gradient of the sum of the cell's results for each input, recorded for a second derivative."""
    from .lltm import lltm

    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    total = sum(result.sum() for result in lltm(*inputs))
    return [gradient.detach() for gradient in torch.autograd.grad(total, inputs, create_graph=True)]
