"""An nn.Module around any stage's cell, and the loop that applies a cell to a sequence."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .modules import load_stage


class LLTM(nn.Module):
    """Holds the parameters of one cell: weights (3S, S+I) and bias (3S).

    `lltm` is a stage's `lltm(...)`; without it, stage 1's is used.
    """

    def __init__(
        self, input_features: int, state_size: int, lltm: Callable[..., tuple[Tensor, Tensor]] | None = None
    ):
        super().__init__()
        self.input_features = input_features
        self.state_size = state_size
        self.lltm = lltm or load_stage(1).lltm
        self.weights = nn.Parameter(torch.empty(3 * state_size, state_size + input_features))
        self.bias = nn.Parameter(torch.empty(3 * state_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weights and bias uniformly from ±1/sqrt(S)."""
        bound = 1 / math.sqrt(self.state_size)
        nn.init.uniform_(self.weights, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """One step: input (B, I) and state (old_h, old_cell), (B, S) each, give (new_h, new_cell)."""
        return self.lltm(input, self.weights, self.bias, *state)

    def extra_repr(self) -> str:
        """The text that `print(module)` shows in the brackets."""
        return f"input_features={self.input_features}, state_size={self.state_size}"


def lltm_sequence(
    lltm: Callable[..., tuple[Tensor, Tensor]],
    inputs: Tensor,
    weights: Tensor,
    bias: Tensor,
    h0: Tensor,
    cell0: Tensor,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Applies any stage's cell to a sequence, one step after another.

    Shapes: inputs (T, B, I), h0 and cell0 (B, S). Returns outputs (T, B, S) and the last (h, cell).
    """
    h, cell, outputs = h0, cell0, []
    for input in inputs:
        h, cell = lltm(input, weights, bias, h, cell)
        outputs.append(h)
    return torch.stack(outputs), (h, cell)
