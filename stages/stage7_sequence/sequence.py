"""Whole sequences in one call. C++ registers the operators, their gradients, fake kernels and autocast rules."""

from typing import NamedTuple

import torch

from . import _C

operators = getattr(torch.ops, _C.NAMESPACE)  # importing _C has registered them


def lltm_sequence(inputs, weights, bias, h0, cell0, *, lengths=None, reverse=False, rung=None):
    """The LLTM over a sequence.

    Shapes: inputs (T, B, I), weights (3S, S+I), bias (3S), h0 and cell0 (B, S). Returns `(outputs, (h, cell))`: h of
    every step (T, B, S), and the state after the last one, (B, S) each.

    `lengths`, (B) int64: the number of steps of each row. Past it, a row keeps its state. With `reverse`, the steps
    are computed from the last to the first, and a row begins at its own end. `rung` is the name of an implementation;
    without it, the library chooses (`explain`). Raises RuntimeError for arguments that do not fit together.
    """
    outputs, h, cell = operators.lltm_sequence(inputs, weights, bias, h0, cell0, lengths, reverse, rung or "")
    return outputs, (h, cell)


def lstm_sequence(
    inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, cell0, *, lengths=None, reverse=False, rung=None
):
    """The LSTM over a sequence, with the weights of `torch.nn.LSTM` (gates: input, forget, cell, output).

    Shapes: inputs (T, B, I), weight_ih (4S, I), weight_hh (4S, S), both biases (4S) or None, h0 and cell0 (B, S).
    Returns `(outputs, (h, cell))`. All else is as for `lltm_sequence`.
    """
    arguments = (inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, cell0, lengths, reverse, rung or "")
    outputs, h, cell = operators.lstm_sequence(*arguments)
    return outputs, (h, cell)


def gru_sequence(inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, *, lengths=None, reverse=False, rung=None):
    """The GRU over a sequence, with the weights of `torch.nn.GRU` (gates: reset, update, candidate).

    Shapes: inputs (T, B, I), weight_ih (3S, I), weight_hh (3S, S), both biases (3S) or None, h0 (B, S).
    Returns `(outputs, h)`. All else is as for `lltm_sequence`.
    """
    arguments = (inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, lengths, reverse, rung or "")
    return operators.gru_sequence(*arguments)


class Choice(NamedTuple):
    """Which rung runs, and why."""

    rung: str
    reason: str

    def __str__(self):
        return f"{self.rung}: {self.reason}"


def explain(cell, T, B, S, dtype=torch.float32, device="cpu", *, backward=False):
    """The rung that the library chooses for a size, forward or backward, and the reason: `print(explain(...))`.

    `cell` is "lltm", "lstm" or "gru". Raises RuntimeError for another name. In C++: the operator `choose_rung`.
    """
    like = torch.empty(0, dtype=dtype, device=device)
    return Choice(*operators.choose_rung(like, cell, T, B, S, backward))
