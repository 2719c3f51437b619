"""Three ways to use tanh_. Do not change this file; edit in_place.py."""

import torch

from .in_place import tanh_


def used_afterwards(start):
    """x after tanh_(x), and the name of the autograd node that made it."""
    x = start * 1
    tanh_(x)
    return x, x.grad_fn.name()


def of_a_leaf(start):
    """tanh_ of a leaf, for which autograd must raise an error."""
    tanh_(start.detach().requires_grad_())


def changed_before_backward(start):
    """The gradient after a write to x between forward and backward, for which autograd must raise an error."""
    x = start * 1
    y = tanh_(x)
    with torch.no_grad():
        y += 1
    return torch.autograd.grad(y.sum(), start)[0]
