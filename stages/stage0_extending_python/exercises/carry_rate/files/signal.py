"""A sound: a tensor of samples, and the number of samples per second."""

import torch
from torch.utils._pytree import tree_leaves, tree_map


class Signal:
    """A tensor with a sampling rate in Hz. Signals of different rates cannot be combined."""

    def __init__(self, tensor, rate):
        self.tensor, self.rate = tensor, rate

    # BEGIN SOLUTION: this function contains four mistakes.
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        rates = {one.rate for one in tree_leaves((args, kwargs)) if isinstance(one, Signal)}
        if len(rates) > 1:
            raise ValueError(f"signals of different rates in {func.__name__}: {sorted(rates)} Hz")
        (rate,) = rates
        args, kwargs = tree_map(lambda one: one.tensor if isinstance(one, Signal) else one, (args, kwargs))
        result = func(*args, **kwargs)
        return tree_map(lambda one: cls(one, rate) if isinstance(one, torch.Tensor) else one, result)

    # BEGIN STARTER
    # @classmethod
    # def __torch_function__(cls, func, types, args=(), kwargs=None):
    #     rate = next(one.rate for one in args if isinstance(one, Signal))
    #     args = [one.tensor if isinstance(one, Signal) else one for one in args]
    #     return cls(func(*args, **kwargs), rate)
    # END STARTER
    # END SOLUTION
