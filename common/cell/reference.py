"""The cell and its gradient written out in float64: the reference that every stage is compared with.

It shares no code with any stage, uses neither autograd nor fused operations, and is simple but slow.
The derivation is in docs/maths.md.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _product(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> tuple[Tensor, Tensor]:
    """X (B, S+I) and the pre-activations z (B, 3S), in float64."""
    X = torch.cat([old_h.double(), input.double()], dim=1)
    return X, X @ weights.double().t() + bias.double()


def _sigmoid(z: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-z))


def _elu(z: Tensor) -> Tensor:
    return torch.where(z > 0, z, torch.expm1(z))


def _d_elu(z: Tensor) -> Tensor:
    return torch.where(z > 0, 1.0, torch.exp(z))


def forward(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """`(new_h, new_cell)`, both (B, S) in float64, from arguments of any floating-point dtype."""
    _, z = _product(input, weights, bias, old_h)
    return pointwise_forward(z, old_cell)


def backward(
    grad_h: Tensor,
    grad_cell: Tensor,
    input: Tensor,
    weights: Tensor,
    bias: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
) -> dict[str, Tensor]:
    """The gradients `d_input`, `d_weights`, `d_bias`, `d_old_h` and `d_old_cell` in float64.

    `grad_h` and `grad_cell`, (B, S) each, are the gradients of the loss with respect to new_h and new_cell.
    """
    X, z = _product(input, weights, bias, old_h)
    d_z, d_old_cell = pointwise_backward(grad_h, grad_cell, z, old_cell)
    d_X = d_z @ weights.double()  # (B, S+I)
    S = old_h.size(1)
    return {
        "d_input": d_X[:, S:],
        "d_weights": d_z.t() @ X,
        "d_bias": d_z.sum(dim=0),
        "d_old_h": d_X[:, :S],
        "d_old_cell": d_old_cell,
    }


def spread(**arguments: Tensor) -> dict[str, Tensor]:
    """For each gradient that is a sum of products, the root of the sum of their squares; arguments as for `backward`.

    Rounding each term of a sum changes it by an amount of this order, even if the terms cancel.
    """
    weights = arguments["weights"]
    X, z = _product(arguments["input"], weights, arguments["bias"], arguments["old_h"])
    d_z, _ = pointwise_backward(arguments["grad_h"], arguments["grad_cell"], z, arguments["old_cell"])
    S = arguments["old_h"].size(1)
    of_d_X = (d_z.square() @ weights.double().square()).sqrt()  # (B, S+I)
    return {
        "d_input": of_d_X[:, S:],
        "d_weights": (d_z.square().t() @ X.square()).sqrt(),
        "d_bias": d_z.square().sum(dim=0).sqrt(),
        "d_old_h": of_d_X[:, :S],
    }


def pointwise_forward(z: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """`(new_h, new_cell)`, both (B, S) in float64, from the pre-activations z (B, 3S)."""
    z_i, z_o, z_g = z.double().chunk(3, dim=1)
    new_cell = old_cell.double() + _elu(z_g) * _sigmoid(z_i)
    return torch.tanh(new_cell) * _sigmoid(z_o), new_cell


def pointwise_backward(grad_h: Tensor, grad_cell: Tensor, z: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """`(d_z, d_old_cell)`, (B, 3S) and (B, S) in float64."""
    grad_h, grad_cell = grad_h.double(), grad_cell.double()
    z_i, z_o, z_g = z.double().chunk(3, dim=1)
    input_gate, output_gate, candidate_cell = _sigmoid(z_i), _sigmoid(z_o), _elu(z_g)
    tanh_new_cell = torch.tanh(old_cell.double() + candidate_cell * input_gate)

    d_new_cell = grad_cell + grad_h * output_gate * (1 - tanh_new_cell**2)
    d_z_i = d_new_cell * candidate_cell * input_gate * (1 - input_gate)
    d_z_o = grad_h * tanh_new_cell * output_gate * (1 - output_gate)
    d_z_g = d_new_cell * input_gate * _d_elu(z_g)
    return torch.cat([d_z_i, d_z_o, d_z_g], dim=1), d_new_cell
