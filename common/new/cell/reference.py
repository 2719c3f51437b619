"""The cell in plain PyTorch, and arguments to test it with. tests/ and bench.py compare the extension with it."""

import torch
from torch.nn import functional as F


def cell(input, weights, bias, old_h, old_cell):
    """One step of the LLTM cell. Shapes: see `arguments`. Returns (new_h, new_cell), both (B, S)."""
    X = torch.cat([old_h, input], dim=1)  # (B, S+I)
    z = torch.addmm(bias, X, weights.t())  # (B, 3S)
    z_i, z_o, z_g = z.chunk(3, dim=1)  # (B, S) each
    new_cell = old_cell + F.elu(z_g) * torch.sigmoid(z_i)
    new_h = torch.tanh(new_cell) * torch.sigmoid(z_o)
    return new_h, new_cell


def arguments(B, I, S, dtype=torch.float64, device="cpu"):
    """Arguments by name, in the cell's order, all requiring gradients: B rows, I input features, S units."""
    shapes = {"input": (B, I), "weights": (3 * S, S + I), "bias": (3 * S,), "old_h": (B, S), "old_cell": (B, S)}
    numbers = torch.Generator().manual_seed(B + I + S)
    made = {name: torch.randn(shape, generator=numbers, dtype=torch.float64) for name, shape in shapes.items()}
    made["weights"] /= (S + I) ** 0.5  # so that z stays near one at all sizes
    return {name: tensor.to(device, dtype).requires_grad_() for name, tensor in made.items()}
