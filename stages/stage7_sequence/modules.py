"""`FastLSTM` and `FastGRU`: drop-ins for `torch.nn.LSTM` and `torch.nn.GRU` that run on this stage's operators."""

import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from .sequence import gru_sequence, lstm_sequence


class _FastRNN(torch.nn.RNNBase):
    """What both modules share. torch's base class has their parameters, so a `state_dict` of torch's module fits.

    They do not derive from `torch.nn.LSTM` and `torch.nn.GRU`, because torch.compile refuses these classes.
    """

    def __init__(self, mode, *arguments, **named):
        super().__init__(mode, *arguments, **named)
        if self.proj_size:
            raise ValueError(f"lltm: {type(self).__name__} has no proj_size; torch.nn.LSTM has")

    def _run_layer(self, inputs, weights, states, lengths, reverse):
        """One layer in one direction: the outputs (T, B, S), and a list of the last states (B, S)."""
        raise NotImplementedError

    def _weights(self, layer, direction):
        """Both weights and both biases, which are None without `bias`."""
        suffix = f"l{layer}{'_reverse' * direction}"
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self, f"{name}_{suffix}", None) for name in names]

    def _run_layers(self, inputs, states, lengths):
        """All layers. Shapes: inputs (T, B, I), each of the states (layers * directions, B, S)."""
        directions = 2 if self.bidirectional else 1
        last_states = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                first_states = [state[layer * directions + direction] for state in states]
                weights = self._weights(layer, direction)
                output, last = self._run_layer(inputs, weights, first_states, lengths, reverse=direction == 1)
                outputs.append(output)
                last_states.append(last)
            inputs = torch.cat(outputs, dim=2) if self.bidirectional else outputs[0]
            if self.dropout and layer + 1 < self.num_layers:
                inputs = torch.nn.functional.dropout(inputs, self.dropout, self.training)
        return inputs, [torch.stack(last) for last in zip(*last_states, strict=True)]

    def _forward(self, input, states, count):
        """`input` as for torch's modules; `states` is a list of `count` tensors, or None for zeros."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, states, count)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self.mode}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        is_batched = input.dim() == 3
        if not is_batched:
            input = input.unsqueeze(0 if self.batch_first else 1)
            states = states and [self._unsqueezed(state) for state in states]
        states = self._checked_states(input, states, count, batch_sizes=None)
        outputs, states = self._run_layers(input.transpose(0, 1) if self.batch_first else input, states, None)
        if self.batch_first:
            outputs = outputs.transpose(0, 1)
        if not is_batched:
            outputs = outputs.squeeze(0 if self.batch_first else 1)
            states = [state.squeeze(1) for state in states]
        return outputs, states

    def _forward_packed(self, input, states, count):
        data, batch_sizes, sorted_indices, unsorted_indices = input
        if states and sorted_indices is not None:
            states = [state.index_select(1, sorted_indices) for state in states]
        states = self._checked_states(data, states, count, batch_sizes)
        padded, lengths = pad_packed_sequence(PackedSequence(data, batch_sizes))  # the longest row first
        outputs, states = self._run_layers(padded, states, lengths.to(data.device))
        packed = pack_padded_sequence(outputs, lengths)
        if unsorted_indices is not None:
            states = [state.index_select(1, unsorted_indices) for state in states]
        return PackedSequence(packed.data, batch_sizes, sorted_indices, unsorted_indices), states

    def _unsqueezed(self, state):
        if state.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {state.dim()}-D tensor")
        return state.unsqueeze(1)

    def _checked_states(self, input, states, count, batch_sizes):
        """The states before the first step, by default zeros. Raises torch's errors for shapes that do not fit."""
        self.check_input(input, batch_sizes)
        shape = self.get_expected_hidden_size(input, batch_sizes)
        if states is None:
            return [torch.zeros(shape, dtype=input.dtype, device=input.device)] * count
        for state, name in zip(states, ("hidden[0]", "hidden[1]"), strict=False):
            self.check_hidden_size(state, shape, f"Expected {name} size {{}}, got {{}}")
        return states


class FastLSTM(_FastRNN):
    """`torch.nn.LSTM`, faster: same arguments except `proj_size`, same parameters, same results up to rounding."""

    def __init__(self, *arguments, **named):
        super().__init__("LSTM", *arguments, **named)

    def _run_layer(self, inputs, weights, states, lengths, reverse):
        return lstm_sequence(inputs, *weights, *states, lengths=lengths, reverse=reverse)

    def forward(self, input, hx=None):
        """`(outputs, (h, cell))`. Shapes and arguments are those of `torch.nn.LSTM`."""
        outputs, states = self._forward(input, hx and list(hx), 2)
        return outputs, tuple(states)


class FastGRU(_FastRNN):
    """`torch.nn.GRU`, faster: same arguments, same parameters, same results up to rounding."""

    def __init__(self, *arguments, **named):
        super().__init__("GRU", *arguments, **named)

    def _run_layer(self, inputs, weights, states, lengths, reverse):
        outputs, h = gru_sequence(inputs, *weights, *states, lengths=lengths, reverse=reverse)
        return outputs, [h]

    def forward(self, input, hx=None):
        """`(outputs, h)`. Shapes and arguments are those of `torch.nn.GRU`."""
        outputs, (h,) = self._forward(input, None if hx is None else [hx], 1)
        return outputs, h
