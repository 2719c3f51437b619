"""Exports a classifier for any number of sequences and steps."""

import torch
from torch.export import Dim

programs = {}  # by sizes: an export takes seconds


def export_classifier(model):
    """The exported program of a `RunningClassifier`, for 1 to 64 sequences with 1 to 1024 steps each."""
    I, S = model.features.in_features, model.features.out_features
    batch, steps = Dim("batch", min=1, max=64), Dim("steps", min=1, max=1024)
    example = torch.zeros(2, 3, I), torch.zeros(2, S), torch.zeros(2, S)
    shapes = {"steps": {0: batch, 1: steps}, "total": {0: batch}, "peak": {0: batch}}
    sizes = I, S, model.head.out_features
    if sizes not in programs:
        programs[sizes] = torch.export.export(model, example, dynamic_shapes=shapes)
    return programs[sizes]
