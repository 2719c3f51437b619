"""`FastLSTM` and `FastGRU`: drop-ins for `torch.nn.LSTM` and `torch.nn.GRU` that run on this stage's operators."""

import sys

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
            states = states and [state.unsqueeze(1) for state in states]
        states = self._first_states(input, states, count, batch_sizes=None)
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
        states = self._first_states(data, states, count, batch_sizes)
        padded, lengths = pad_packed_sequence(PackedSequence(data, batch_sizes))  # the longest row first
        outputs, states = self._run_layers(padded, states, lengths.to(data.device))
        packed = pack_padded_sequence(outputs, lengths)
        if unsorted_indices is not None:
            states = [state.index_select(1, unsorted_indices) for state in states]
        return PackedSequence(packed.data, batch_sizes, sorted_indices, unsorted_indices), states

    def _first_states(self, input, states, count, batch_sizes):
        """The states before the first step, by default zeros. Raises torch's errors for a wrong input."""
        self.check_input(input, batch_sizes)
        if states is not None:
            return states
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return [torch.zeros(shape, dtype=input.dtype, device=input.device)] * count

    def _fits(self, input, states):
        """Whether all of `states` are tensors that this input calls for."""
        if isinstance(input, PackedSequence):
            input, shape = input.data, self.get_expected_hidden_size(input.data, input.batch_sizes)
        elif input.dim() == 3:
            shape = self.get_expected_hidden_size(input, None)
        elif input.dim() == 2:
            shape = (self.num_layers * (2 if self.bidirectional else 1), self.hidden_size)
        else:
            return True  # the error is about the input
        return all(isinstance(state, torch.Tensor) and self._fits_one(state, shape, input) for state in states)

    def _fits_one(self, state, shape, input):
        is_same_dtype = state.dtype == input.dtype
        if torch.is_autocast_enabled(input.device.type):  # casts all of these to the same dtype
            is_same_dtype |= {state.dtype, input.dtype} <= {torch.float16, torch.bfloat16, torch.float32}
        return state.size() == shape and state.device == input.device and is_same_dtype

    def _as_official(self):
        """The module of torch with the same parameters."""
        module = self.official.__new__(self.official)
        module.__dict__.update(self.__dict__)
        return module

    def __prepare_scriptable__(self):
        """`torch.jit.script` calls this first. TorchScript cannot compile the functions of this stage."""
        name, official = type(self).__name__, self.official.__name__
        raise RuntimeError(
            f"lltm: torch.jit.script cannot compile {name}; use torch.compile, or script a torch.nn.{official} with "
            "its state_dict"
        )

    def __reduce_ex__(self, protocol):
        """Pickles the module so that another process finds its class, even if pip has not installed this stage."""
        new, (cls, *arguments), *rest = super().__reduce_ex__(protocol)
        if cls.__module__ != __name__ or not hasattr(sys.modules[__package__], "TARGET"):
            return new, (cls, *arguments), *rest  # a class derived from these, or a package that pip has installed
        return object.__new__, (_Call(getattr, _load_stage(), cls.__name__),), *rest

    def __copy__(self):
        """`copy.copy` uses the result of `__reduce_ex__` without unpickling it."""
        copied = type(self).__new__(type(self))
        copied.__setstate__(self.__getstate__())
        return copied


class _Call:
    """A pickle contains the call instead of this object, and unpickling calls the function again."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def _load_stage():
    """The call of the workbook's `load` that loads this package, which was loaded by it."""
    package = sys.modules[__package__]
    is_for_one_target = __package__.endswith(f"_{package.TARGET}")
    return _Call(sys.modules["common"].load, 7, *[package.TARGET] * is_for_one_target)


class FastLSTM(_FastRNN):
    """`torch.nn.LSTM`, faster: same arguments except `proj_size`, same parameters, same results up to rounding."""

    official = torch.nn.LSTM

    def __init__(self, *arguments, **named):
        super().__init__("LSTM", *arguments, **named)

    def _run_layer(self, inputs, weights, states, lengths, reverse):
        return lstm_sequence(inputs, *weights, *states, lengths=lengths, reverse=reverse)

    def _check_layers(self, input, hx):
        """For packed sequences, torch.nn.LSTM has no such check, and ends the process with a segmentation fault."""
        if not isinstance(input, PackedSequence) or not isinstance(hx, (tuple, list)):
            return
        if len(hx) > 1 and all(isinstance(state, torch.Tensor) and state.dim() == 3 for state in hx[:2]):
            shape = self.get_expected_hidden_size(input.data, input.batch_sizes)
            if hx[0].size(0) != hx[1].size(0):
                for state, name in zip(hx[:2], ("hidden[0]", "hidden[1]"), strict=True):
                    self.check_hidden_size(state, shape, f"Expected {name} size {{}}, got {{}}")

    def forward(self, input, hx=None):
        """`(outputs, (h, cell))`. Shapes and arguments are those of `torch.nn.LSTM`."""
        if hx is not None and not (isinstance(hx, (tuple, list)) and len(hx) == 2 and self._fits(input, hx)):
            self._check_layers(input, hx)
            return self._as_official().forward(input, hx)  # raises the error of torch
        outputs, states = self._forward(input, hx and list(hx), 2)
        return outputs, tuple(states)


class FastGRU(_FastRNN):
    """`torch.nn.GRU`, faster: same arguments, same parameters, same results up to rounding."""

    official = torch.nn.GRU

    def __init__(self, *arguments, **named):
        super().__init__("GRU", *arguments, **named)

    def _run_layer(self, inputs, weights, states, lengths, reverse):
        outputs, h = gru_sequence(inputs, *weights, *states, lengths=lengths, reverse=reverse)
        return outputs, [h]

    def forward(self, input, hx=None):
        """`(outputs, h)`. Shapes and arguments are those of `torch.nn.GRU`."""
        if hx is not None and not self._fits(input, [hx]):
            return self._as_official().forward(input, hx)  # raises the error of torch
        outputs, (h,) = self._forward(input, None if hx is None else [hx], 1)
        return outputs, h
