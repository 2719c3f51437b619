"""A sound: a tensor of samples, and the number of samples per second."""

import torch
from torch.utils._pytree import tree_leaves, tree_map


class Signal:
    """A tensor with a sampling rate in Hz. Signals of different rates cannot be combined."""

    def __init__(self, tensor, rate):
        self.tensor, self.rate = tensor, rate

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args, kwargs = args, kwargs or {}
        rates = sorted({one.rate for one in tree_leaves((args, kwargs)) if isinstance(one, Signal)})
        if len(rates) > 1:
            raise ValueError(f"{func.__name__}: signals of {rates[0]:g} Hz and {rates[1]:g} Hz cannot be combined")
        args, kwargs = tree_map(lambda one: one.tensor if isinstance(one, Signal) else one, (args, kwargs))
        result = func(*args, **kwargs)
        return tree_map(lambda one: cls(one, rates[0]) if isinstance(one, torch.Tensor) else one, result)
