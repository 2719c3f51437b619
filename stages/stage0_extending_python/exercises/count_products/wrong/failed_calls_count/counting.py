"""A tensor that counts the multiplications of matrix products."""

import math

import torch
import torch.nn.functional as F

multiplications = [0]  # the count so far, in a list of one number

# Each product, and the name of its second factor.
SECOND = {
    torch.matmul: "other",
    torch.Tensor.matmul: "other",
    torch.Tensor.__matmul__: "other",
    torch.Tensor.__rmatmul__: "other",
    torch.mm: "mat2",
    torch.Tensor.mm: "mat2",
    F.linear: "weight",
}


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in SECOND:
            left = args[0] if args else kwargs["input"]
            right = args[1] if len(args) > 1 else kwargs[SECOND[func]]
            if func is torch.Tensor.__rmatmul__:
                left, right = right, left
            if left.dim() == right.dim() == 2:
                columns = right.size(0) if func is F.linear else right.size(1)
                multiplications[0] += math.prod(left.shape) * columns
        return super().__torch_function__(func, types, args, kwargs)
