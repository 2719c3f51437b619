"""A sound: a tensor of samples, and the number of samples per second."""

import torch
from torch.utils._pytree import tree_leaves, tree_map


class Signal:
    """A tensor with a sampling rate in Hz. Signals of different rates cannot be combined."""

    def __init__(self, tensor, rate):
        self.tensor, self.rate = tensor, rate

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        rates = []

        def unwrap(one):
            if isinstance(one, list):
                return [unwrap(item) for item in one]
            if not isinstance(one, Signal):
                return one
            rates.append(one.rate)
            return one.tensor

        args = [unwrap(one) for one in args]
        kwargs = {name: unwrap(one) for name, one in (kwargs or {}).items()}
        for rate in rates:
            if rate != rates[0]:
                raise ValueError(f"{func.__name__}: signals of {rates[0]} Hz and {rate} Hz cannot be combined")
        result = func(*args, **kwargs)
        return tree_map(lambda one: cls(one, rates[0]) if isinstance(one, torch.Tensor) else one, result)
