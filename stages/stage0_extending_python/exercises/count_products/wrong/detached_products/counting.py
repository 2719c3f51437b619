"""A tensor that counts the multiplications of matrix products."""

import math

import torch
import torch.nn.functional as F

multiplications = [0]  # the count so far, in a list of one number

PRODUCTS = {
    torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__,
    F.linear,
}  # fmt: skip


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""


    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in PRODUCTS:
            named = [kwargs[name] for name in ("input", "other", "mat2", "weight") if name in kwargs]
            first, second = [*args, *named][:2]
            if func is torch.Tensor.__rmatmul__:
                first, second = second, first
            if first.dim() == second.dim() == 2:
                plain = lambda one: one.as_subclass(torch.Tensor) if isinstance(one, torch.Tensor) else one
                result = func(*map(plain, args), **{name: plain(one) for name, one in kwargs.items()})
                multiplications[0] += first.numel() * result.size(1)
                return torch.Tensor._make_subclass(cls, result)
        return super().__torch_function__(func, types, args, kwargs)
