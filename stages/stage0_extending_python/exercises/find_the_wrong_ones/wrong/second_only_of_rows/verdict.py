"""A test whether the derivatives of a function are right."""

import torch
from torch.autograd import gradcheck, gradgradcheck


def is_right(function):
    """Whether the first and second derivatives of a function of one tensor (M, N) are right."""
    strict = {"rtol": 1e-6, "atol": 1e-8, "raise_exception": False}
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    turned = torch.randn(5, 4, dtype=torch.float64).t().requires_grad_()
    if not all(gradcheck(function, one, **strict) for one in (x, turned)):
        return False
    return gradgradcheck(function, x, **strict)
