"""The network: a recurrent cell, which any stage can compute, over all steps of a sequence, and a linear layer."""

import importlib
import sys
from pathlib import Path

import torch
from torch import nn

from .errors import TrainingError

CELLS = ("lltm", "lstm", "gru")
STAGES = ("1", "2", "3", "4", "5", "6", "7", "nn")


class Network(nn.Module):
    """Reads a sequence with a recurrent module, and computes the outputs from its last h."""

    def __init__(self, recurrence, state_size, output_size):
        super().__init__()
        self.recurrence = recurrence  # with the call of torch.nn.LSTM: (T, B, I) -> ((T, B, S), last state)
        self.head = nn.Linear(state_size, output_size)

    def forward(self, inputs):
        """Shapes: inputs (B, T, I), result (B, O)."""
        outputs, _ = self.recurrence(inputs.transpose(0, 1).contiguous())
        return self.head(outputs[-1])


class LLTM(nn.Module):
    """The LLTM over all steps of a sequence, computed by the functions of a stage."""

    def __init__(self, stage, input_size, state_size):
        super().__init__()
        self.stage, self.state_size = stage, state_size
        bound = state_size**-0.5
        self.weights = nn.Parameter(torch.empty(3 * state_size, state_size + input_size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(3 * state_size).uniform_(-bound, bound))

    def forward(self, inputs):
        """Shapes: inputs (T, B, I); outputs (T, B, S), last h and cell (B, S)."""
        zero = inputs.new_zeros(inputs.size(1), self.state_size)
        if hasattr(self.stage, "lltm_sequence"):
            return self.stage.lltm_sequence(inputs, self.weights, self.bias, zero, zero)
        h, cell, outputs = zero, zero, []
        for input in inputs:
            h, cell = self.stage.lltm(input, self.weights, self.bias, h, cell)
            outputs.append(h)
        return torch.stack(outputs), (h, cell)


def make_network(task, cell, stage, state_size):
    """A network for a task with new parameters. `stage` is a number as text, or "nn" for torch's own LSTM and GRU.

    Raises `TrainingError` for a cell that the stage does not have, and for a stage that does not run here.
    """
    module = nn if stage == "nn" else load_stage(int(stage))
    names = {"lstm": ("LSTM", "FastLSTM"), "gru": ("GRU", "FastGRU")}
    if cell == "lltm" and stage != "nn":
        recurrence = LLTM(module, task.input_size, state_size)
    elif found := [getattr(module, name) for name in names.get(cell, ()) if hasattr(module, name)]:
        recurrence = found[0](task.input_size, state_size)
    else:
        has = ", ".join(STAGES[:-1]) if cell == "lltm" else "7, nn"
        raise TrainingError(f"--stage {stage} has no {cell}; choose --stage {has}")
    return Network(recurrence, state_size, task.output_size)


def load_stage(number):
    """A stage that pip has installed, or else the workbook's, which is built if needed."""
    try:
        return importlib.import_module(f"lltm_stage{number}")
    except ModuleNotFoundError:
        pass
    sys.path.insert(1, str(Path(__file__).resolve().parents[2]))
    try:
        from common import load
        from common.errors import UserError
    except ModuleNotFoundError:
        folder = f"stages/stage{number}_..."
        raise TrainingError(f"stage {number} is not installed: pip install --no-build-isolation {folder}") from None
    try:
        return load(number)
    except UserError as error:
        raise TrainingError(str(error)) from None
