"""A classifier of sequences: features of each step, the LLTM over all steps, and scores of the classes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class SequenceClassifier(nn.Module):
    """Scores of the classes after each sequence of a batch, and the state from which the sequences can go on.

    `lltm_sequence` is stage 7's function. I input features, S numbers of state, C classes.
    """

    def __init__(self, lltm_sequence: Callable, I: int, S: int, C: int, features: int = 32):
        super().__init__()
        self.lltm_sequence = lltm_sequence
        self.features = nn.Linear(I, features)
        self.weights = nn.Parameter(torch.empty(3 * S, S + features).uniform_(-(S**-0.5), S**-0.5))
        self.bias = nn.Parameter(torch.zeros(3 * S))
        self.head = nn.Linear(S, C)

    def forward(self, steps: Tensor, lengths: Tensor, h: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns `(scores (B, C), h (B, S), cell (B, S))`, all after the last step of each row.

        Shapes: steps (B, T, I), lengths (B) int64 from 0 to T, h and cell (B, S) before the first step.
        """
        features = torch.relu(self.features(steps))  # (B, T, features)
        _, (h, cell) = self.lltm_sequence(features.transpose(0, 1), self.weights, self.bias, h, cell, lengths=lengths)
        return self.head(h), h, cell

    def first_state(self, B: int) -> tuple[Tensor, Tensor]:
        """The state before the first step of B sequences: zeros, in two tensors, on the device of the parameters."""
        # Not one tensor twice: torch.export would take h and cell of the example for the same input, and the package
        # would read h for both, without an error.
        S = self.head.in_features
        return self.bias.new_zeros(B, S), self.bias.new_zeros(B, S)
