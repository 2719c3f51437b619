"""Two ways to follow numbers through torch: a subclass that logs every call, and a wrapper that carries metadata."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch.utils._pytree import tree_leaves, tree_map


class LoggingTensor(torch.Tensor):
    """A tensor that logs each function, method and attribute that is used on it. Created by `as_subclass`."""

    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LoggingTensor.calls.append(torch.overrides.resolve_name(func) or func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Sourced:
    """A tensor and the sources of its numbers: a set of names that every call passes on to its results."""

    def __init__(self, tensor, sources):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"Sourced: tensor is a {type(tensor).__name__}, expected a torch.Tensor")
        if isinstance(sources, str) or not isinstance(sources, Iterable):
            raise TypeError(f"Sourced: sources is {sources!r}, expected a set of names")
        self.tensor, self.sources = tensor, frozenset(sources)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}  # kwargs is None if a call has no keyword arguments
        if not all(issubclass(kind, (torch.Tensor, Sourced)) for kind in types):
            return NotImplemented
        if isinstance(kwargs.get("out"), Sourced):
            raise TypeError(f"{func.__name__}: out is Sourced, but its sources would not be updated")
        carriers = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Sourced)]
        sources = frozenset().union(*(one.sources for one in carriers))  # a result has the sources of all its inputs
        args, kwargs = tree_map(lambda one: one.tensor if isinstance(one, Sourced) else one, (args, kwargs))
        result = func(*args, **kwargs)
        return tree_map(lambda one: cls(one, sources) if isinstance(one, torch.Tensor) else one, result)

    def __repr__(self):
        return f"Sourced({self.tensor}, sources={sorted(self.sources)})"
