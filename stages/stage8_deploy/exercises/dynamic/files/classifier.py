"""A classifier whose state is a running sum and a running maximum. Do not change this file; edit export.py."""

import torch
from torch import nn


class RunningClassifier(nn.Module):
    """Scores of C classes from features of I inputs, summed up and maximised over all steps so far."""

    def __init__(self, I, S, C):
        super().__init__()
        self.features = nn.Linear(I, S)
        self.head = nn.Linear(2 * S, C)

    def forward(self, steps, total, peak):
        """Returns `(scores (B, C), total (B, S), peak (B, S))` after the last step.

        Shapes: steps (B, T, I), total and peak (B, S) before the first step.
        """
        features = torch.relu(self.features(steps))  # (B, T, S)
        total = total + features.sum(1)
        peak = torch.maximum(peak, features.amax(1))
        return self.head(torch.cat([total, peak], 1)), total, peak
