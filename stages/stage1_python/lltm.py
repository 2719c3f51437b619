"""The LLTM cell in plain Python. Every later stage computes the same and is compared with this one."""

import torch
import torch.nn.functional as F


def lltm(input, weights, bias, old_h, old_cell):
    """One step of the cell.

    Shapes: input (B, I), weights (3S, S+I), bias (3S), old_h (B, S), old_cell (B, S).
    Returns (new_h, new_cell), both (B, S). Raises RuntimeError for arguments that do not fit together.
    """
    check_arguments(input, weights, bias, old_h, old_cell)
    return equations(input, weights, bias, old_h, old_cell)


def equations(input, weights, bias, old_h, old_cell):
    X = torch.cat([old_h, input], dim=1)  # (B, S+I)
    z_i, z_o, z_g = F.linear(X, weights, bias).chunk(3, dim=1)  # (B, S) each
    input_gate, output_gate, candidate_cell = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_g)
    new_cell = old_cell + candidate_cell * input_gate
    new_h = torch.tanh(new_cell) * output_gate
    return new_h, new_cell


def check_arguments(input, weights, bias, old_h, old_cell):
    # Without these checks, a bias of shape (1) or an old_cell of shape (1, S) would be broadcast without an error.
    if not input.is_floating_point():
        raise RuntimeError(f"lltm: input has dtype {input.dtype}, expected a floating-point dtype")
    if input.dim() != 2:
        raise RuntimeError(f"lltm: input has shape {tuple(input.shape)}, expected two dimensions: (B, I)")
    if weights.dim() != 2:
        raise RuntimeError(f"lltm: weights has shape {tuple(weights.shape)}, expected two dimensions: (3S, S+I)")
    (B, I), S = input.shape, weights.size(0) // 3
    expected = {"weights": (3 * S, S + I), "bias": (3 * S,), "old_h": (B, S), "old_cell": (B, S)}
    for (name, shape), tensor in zip(expected.items(), (weights, bias, old_h, old_cell), strict=True):
        if tensor.dtype != input.dtype:
            raise RuntimeError(f"lltm: {name} has dtype {tensor.dtype}, but input has {input.dtype}")
        if tensor.device != input.device:
            raise RuntimeError(f"lltm: {name} is on {tensor.device}, but input is on {input.device}")
        if tensor.shape != shape:
            raise RuntimeError(
                f"lltm: {name} has shape {tuple(tensor.shape)}, but weights of shape {tuple(weights.shape)} "
                f"and input of shape {tuple(input.shape)} call for {shape}"
            )
