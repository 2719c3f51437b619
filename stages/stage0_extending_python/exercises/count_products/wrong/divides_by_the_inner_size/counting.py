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
    F.linear: lambda input, weight, bias=None: (input, weight.t()),
}


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in FACTORS:
            left, right = FACTORS[func](*args, **kwargs)
            if left.dim() == right.dim() == 2:
                # m*k and k*n numbers, so m*k*n is their product divided by k
                multiplications[0] += math.prod(left.shape) * math.prod(right.shape) // left.size(1)
        return super().__torch_function__(func, types, args, kwargs)

