"""Recurrent cells over whole sequences, as functions of tensors and as drop-ins for `torch.nn.LSTM` and `GRU`."""

from .sequence import gru_sequence, lltm_sequence, lstm_sequence

__all__ = ["gru_sequence", "lltm_sequence", "lstm_sequence"]
