"""A sound: a tensor of samples, and the number of samples per second."""

import torch
from torch.utils._pytree import tree_leaves, tree_map


class Signal:
    """A tensor with a sampling rate in Hz. Signals of different rates cannot be combined."""

    def __init__(self, tensor, rate):
        self.tensor, self.rate = tensor, rate

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        signals = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Signal)]
        rates = sorted({int(one.rate) for one in signals})
        if len(rates) > 1:
            raise ValueError("signals of different rates: " + " and ".join(f"{rate} Hz" for rate in rates))
        args, kwargs = tree_map(lambda one: one.tensor if isinstance(one, Signal) else one, (args, kwargs))
        result = func(*args, **kwargs)
        return tree_map(lambda one: cls(one, signals[0].rate) if isinstance(one, torch.Tensor) else one, result)
