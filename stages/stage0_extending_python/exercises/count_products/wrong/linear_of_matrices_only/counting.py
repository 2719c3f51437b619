"""A tensor that counts the multiplications of matrix products."""

import math

import torch
import torch.nn.functional as F

multiplications = [0]  # the count so far, in a list of one number

# The two factors of each function, whatever the form of the call.
FACTORS = {
    torch.matmul: lambda input, other, **_: (input, other),
    torch.Tensor.matmul: lambda self, other, **_: (self, other),
    torch.Tensor.__matmul__: lambda self, other: (self, other),
    torch.Tensor.__rmatmul__: lambda self, other: (other, self),
    torch.mm: lambda input, mat2, **_: (input, mat2),
    torch.Tensor.mm: lambda self, mat2, **_: (self, mat2),
}


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in FACTORS:
            left, right = FACTORS[func](*args, **kwargs)
            if left.dim() == 2 and right.dim() == 2:
                multiplications[0] += left.size(0) * left.size(1) * right.size(1)
        elif func is F.linear:
            input, weight = [*args, *(kwargs[name] for name in ("input", "weight") if name in kwargs)][:2]
            (m, k), n = input.shape, weight.size(0)
            multiplications[0] += m * k * n
        return super().__torch_function__(func, types, args, kwargs)

