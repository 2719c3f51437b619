"""A tensor that counts the multiplications of matrix products."""

import math

import torch
import torch.nn.functional as F

multiplications = [0]  # the count so far, in a list of one number

PRODUCTS = {
    torch.matmul: ("input", "other"),
    torch.mm: ("input", "mat2"),
    torch.Tensor.matmul: ("self", "other"),
    torch.Tensor.mm: ("self", "mat2"),
    F.linear: ("input", "weight"),
}


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = super().__torch_function__(func, types, args, kwargs)
        if func in PRODUCTS and result is not NotImplemented:
            left, right = (args[k] if k < len(args) else kwargs[name] for k, name in enumerate(PRODUCTS[func]))
            m, k = left.shape
            rows, columns = right.shape
            n = rows if func is F.linear else columns
            multiplications[0] += m * k * n
        return result


