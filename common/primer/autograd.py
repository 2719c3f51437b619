"""Functions with a gradient of their own. 0.1 to 0.6: functions.py and linear.py of stage 0."""

from __future__ import annotations

import torch

from .. import build
from .checks import Check

functions = build.load(0).functions


def cube() -> str:
    """The derivatives of x ** 3, the second one too."""
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(functions.cube, x)
    assert torch.autograd.gradgradcheck(functions.cube, x)
    return "gradcheck and gradgradcheck at 5 places"


CHECKS = (Check("cube: both derivatives", cube),)
