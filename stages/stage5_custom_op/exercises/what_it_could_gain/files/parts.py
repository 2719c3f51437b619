"""Two parts of a cell, as eager mode runs them: each line below that computes is a kernel of its own or several."""

import torch
import torch.nn.functional as F


def pointwise(z, old_cell):
    """z (B, 3S), old_cell (B, S) -> new_h, new_cell: both (B, S). chunk makes views."""
    z_i, z_o, z_g = z.chunk(3, dim=1)
    new_cell = old_cell + F.elu(z_g) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def product(a, b):
    """Of two matrices."""
    return a @ b
