"""A tensor that counts the multiplications of matrix products."""

import math

import torch
import torch.nn.functional as F

multiplications = [0]  # the count so far, in a list of one number

FUNCTIONS = {torch.matmul: ("input", "other"), torch.mm: ("input", "mat2"), F.linear: ("input", "weight")}
METHODS = (torch.Tensor.matmul, torch.Tensor.mm, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__)


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = super().__torch_function__(func, types, args, kwargs)
        if func in METHODS:
            left, right = args
        elif func in FUNCTIONS:
            named = dict(zip(FUNCTIONS[func], args)) | kwargs
            left, right = (named[name] for name in FUNCTIONS[func])
        else:
            return result
        if left.dim() == right.dim() == 2:
            with torch._C.DisableTorchFunctionSubclass():
                multiplications[0] += left.size(0) * left.size(1) * result.size(1)
        return result


