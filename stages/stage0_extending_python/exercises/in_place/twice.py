"""The second derivative through tanh_. It runs in the learner's process."""

import torch


def second_derivative(start):
    """The second derivative of tanh_(x) ** 2, or None if backward says that it has no derivative."""
    from .in_place import tanh_

    x = start * 1
    tanh_(x)
    (first,) = torch.autograd.grad(x.square().sum(), start, create_graph=True)
    try:
        (second,) = torch.autograd.grad(first.sum(), start)
    except RuntimeError as error:
        if "once_differentiable" not in str(error):
            raise
        return None
    return second
