"""A tensor that counts the multiplications of matrix products."""

import math

import torch
import torch.nn.functional as F

multiplications = [0]  # the count so far, in a list of one number

PRODUCTS = {torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm}


def factors(func, args, kwargs):
    """The two matrices of a product, the second one as (k, n)."""
    if func is F.linear:
        input, weight, *_ = *args, *(kwargs[name] for name in ("input", "weight") if name in kwargs)
        return input, weight.t()
    left, right, *_ = *args, *kwargs.values()
    return left, right


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = super().__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented and (func in PRODUCTS or func is F.linear):
            with torch._C.DisableTorchFunctionSubclass():
                left, right = factors(func, args, kwargs)
                if left.dim() == right.dim() == 2:
                    multiplications[0] += math.prod(left.shape) * right.size(1)
        return result


