"""Recurrent cells over whole sequences, as functions of tensors and as drop-ins for `torch.nn.LSTM` and `GRU`."""

from . import graphs as _graphs  # noqa: F401  (registers the rung "graph")
from .modules import FastGRU, FastLSTM
from .sequence import explain, gru_sequence, lltm_sequence, lstm_sequence

__all__ = ["FastGRU", "FastLSTM", "explain", "gru_sequence", "lltm_sequence", "lstm_sequence"]
