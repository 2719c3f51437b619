"""The LLTM cell as one operator, whose gradient, fake kernel and autocast rule are registered in C++."""

import torch

from . import _C

operators = getattr(torch.ops, _C.NAMESPACE)  # importing _C has registered them


def lltm(input, weights, bias, old_h, old_cell):
    """One step of the cell.

    Shapes: input (B, I), weights (3S, S+I), bias (3S), old_h (B, S), old_cell (B, S).
    Returns (new_h, new_cell), both (B, S). Raises RuntimeError for arguments that do not fit together.
    """
    new_h, new_cell, _ = operators.cell(input, weights, bias, old_h, old_cell)
    return new_h, new_cell
