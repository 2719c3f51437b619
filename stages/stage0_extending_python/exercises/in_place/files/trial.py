"""Six ways to use tanh_. Do not change this file; edit in_place.py."""

import torch

from .in_place import tanh_


def used_afterwards(start):
    """x after tanh_(x), and the name of the autograd node that made it."""
    x = start * 1
    tanh_(x)
    return x, x.grad_fn.name()


def used_after_backward(start):
    """x after tanh_(x) and a backward pass."""
    x = start * 1
    tanh_(x)
    torch.autograd.grad(x.sum(), start, retain_graph=True)
    return x.detach()


def of_a_leaf(start):
    """tanh_ of a leaf, for which autograd must raise an error."""
    tanh_(start.detach().requires_grad_())


def of_a_plain_tensor(start):
    """x after tanh_ of a tensor that requires no gradient, and whether tanh_ returned x itself."""
    x = start.detach().clone()
    return x, tanh_(x) is x


def changed_after_it_was_saved(start):
    """The gradient of sin(x) after tanh_ has overwritten x, for which autograd must raise an error."""
    x = start * 1
    y = x.sin()
    tanh_(x)
    return torch.autograd.grad(y.sum(), start)[0]


def changed_before_backward(start):
    """The gradient after a write to x between forward and backward, for which autograd must raise an error."""
    x = start * 1
    y = tanh_(x)
    with torch.no_grad():
        y += 1
    return torch.autograd.grad(y.sum(), start)[0]
