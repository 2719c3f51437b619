"""A tensor that counts the multiplications of matrix products."""

import math

import torch
import torch.nn.functional as F

multiplications = [0]  # the count so far, in a list of one number

# BEGIN SOLUTION: the functions that are matrix products, and what the class does with them.
PRODUCTS = {torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm, F.linear}


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        if func in PRODUCTS:
            matrices = [one for one in [*args, *(kwargs or {}).values()] if getattr(one, "ndim", 0) == 2]
            if len(matrices) == 2:
                multiplications[0] += math.isqrt(math.prod(one.numel() for one in [*matrices, result]))
        return result


# BEGIN STARTER
#
#
# class Counting(torch.Tensor):
#     """A tensor whose matrix products are counted."""
#
#
# END STARTER
# END SOLUTION
