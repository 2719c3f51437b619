"""Calls smooth twice before the first backward, and twice with the same list. It runs in the learner's process."""

import torch


def gradients(signal, first, second):
    """The gradient of smooth(signal, first), after a call with another kernel, twice; and `first` afterwards."""
    from .smooth import smooth

    kernel = list(first)
    y = smooth(signal, kernel)
    smooth(signal, list(second))
    (first_time,) = torch.autograd.grad(y.sum(), signal)
    (second_time,) = torch.autograd.grad(smooth(signal, kernel).sum(), signal)
    return [first_time, second_time], kernel
