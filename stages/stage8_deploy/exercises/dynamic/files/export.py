"""Exports a classifier for any number of sequences and steps."""

import torch
from torch.export import Dim


def export_classifier(model):
    """The exported program of a `RunningClassifier`, for 1 to 64 sequences with 1 to 1024 steps each."""
    I, S = model.features.in_features, model.features.out_features
    # BEGIN SOLUTION: the program accepts one batch size and one length, and confuses the two states.
    batch, length = Dim("batch", max=64), Dim("length", max=1024)
    example = torch.zeros(2, 3, I), torch.zeros(2, S), torch.zeros(2, S)
    shapes = {0: batch, 1: length}, {0: batch}, {0: batch}
    return torch.export.export(model, example, dynamic_shapes=shapes)
    # BEGIN STARTER
    # batch = Dim("batch", max=64)
    # state = torch.zeros(1, S)
    # example = torch.zeros(1, 3, I), state, state
    # return torch.export.export(model, example)
    # END STARTER
    # END SOLUTION
