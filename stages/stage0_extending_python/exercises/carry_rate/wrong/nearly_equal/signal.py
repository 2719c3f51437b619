"""A sound: a tensor of samples, and the number of samples per second."""

import math

import torch
from torch.utils._pytree import tree_leaves, tree_map


class Signal:
    """A tensor with a sampling rate in Hz. Signals of different rates cannot be combined."""

    def __init__(self, tensor, rate):
        self.tensor, self.rate = tensor, rate

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        rate, *others = [one.rate for one in tree_leaves((args, kwargs)) if isinstance(one, Signal)]
        for other in others:
            if not math.isclose(rate, other, rel_tol=1e-3):  # rates are floating-point numbers
                raise ValueError(f"{func.__name__}: signals of {rate} Hz and {other} Hz cannot be combined")
        args, kwargs = tree_map(lambda one: one.tensor if isinstance(one, Signal) else one, (args, kwargs))
        result = func(*args, **kwargs)
        return tree_map(lambda one: cls(one, rate) if isinstance(one, torch.Tensor) else one, result)
