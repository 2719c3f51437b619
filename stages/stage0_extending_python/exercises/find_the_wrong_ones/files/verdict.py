"""A test whether the derivatives of a function are right."""

import torch
from torch.autograd import gradcheck, gradgradcheck


def is_right(function):
    """Whether the first and second derivatives of a function of one tensor (M, N) are right."""
    # BEGIN SOLUTION: the given test lets wrong functions pass.
    x = torch.randn(4, 5, dtype=torch.float64)
    for given in (x, x.t()):
        for test in (gradcheck, gradgradcheck):
            if not test(function, given.requires_grad_(), rtol=1e-5, atol=1e-6, raise_exception=False):
                return False
    return True
    # BEGIN STARTER
    # x = torch.rand(4, 5, requires_grad=True)
    # return gradcheck(function, x, raise_exception=False)
    # END STARTER
    # END SOLUTION
