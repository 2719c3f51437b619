"""The cells that a sequence may run: their arguments, and one step in plain torch operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import elu

State = tuple[Tensor, ...]  # h (B, S), and the cell (B, S) if there is one
Step = Callable[[Tensor, Tensor, State], State]


@dataclass(frozen=True)
class SequenceCell:
    """A cell: how many gates it has, the names of its parameters and states, and one step.

    `step(x, r, state)` computes the new state from the input part and the recurrent part of the pre-activations,
    (B, gates * S) each. The recurrent weights of the LLTM are the first S columns of `weights`; the LSTM and the GRU
    have the parameters of `torch.nn.LSTM` and `torch.nn.GRU`.
    """

    name: str
    gates: int
    parameters: tuple[str, ...]
    states: tuple[str, ...]
    step: Step

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the sequence function that are tensors, in order."""
        return ("inputs", *self.parameters, *(f"{name}0" for name in self.states))

    def split(self, given: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Weights (G*S, I), recurrent weights (G*S, S) and both biases (G*S); a bias that is missing is zero."""
        S = given["h0"].size(1)
        zero = given["h0"].new_zeros(self.gates * S)
        if "weights" in given:
            return given["weights"][:, S:], given["weights"][:, :S], given["bias"], zero
        return (
            given["weight_ih"],
            given["weight_hh"],
            given.get("bias_ih", zero),
            given.get("bias_hh", zero),
        )

    def join(self, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor) -> dict[str, Tensor]:
        """What `split` took apart, by name."""
        if "weights" in self.parameters:
            return {"weights": torch.cat([weight_hh, weight_ih], 1), "bias": bias_ih}
        return {"weight_ih": weight_ih, "weight_hh": weight_hh, "bias_ih": bias_ih, "bias_hh": bias_hh}


def lltm_step(x: Tensor, r: Tensor, state: State) -> State:
    """The LLTM's new h and cell; gates: input, output, candidate."""
    _, cell = state
    z_i, z_o, z_g = (x + r).chunk(3, 1)
    new_cell = cell + elu(z_g) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def lstm_step(x: Tensor, r: Tensor, state: State) -> State:
    """The LSTM's new h and cell; gates: input, forget, candidate, output."""
    _, cell = state
    z_i, z_f, z_g, z_o = (x + r).chunk(4, 1)
    new_cell = torch.sigmoid(z_f) * cell + torch.sigmoid(z_i) * torch.tanh(z_g)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def gru_step(x: Tensor, r: Tensor, state: State) -> State:
    """The GRU's new h; gates: reset, update, candidate, whose recurrent part the reset gate multiplies."""
    (h,) = state
    (x_r, x_u, x_n), (r_r, r_u, r_n) = x.chunk(3, 1), r.chunk(3, 1)
    reset, update = torch.sigmoid(x_r + r_r), torch.sigmoid(x_u + r_u)
    candidate = torch.tanh(x_n + reset * r_n)
    return ((1 - update) * candidate + update * h,)


TORCH_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
LLTM = SequenceCell("lltm", 3, ("weights", "bias"), ("h", "cell"), lltm_step)
LSTM = SequenceCell("lstm", 4, TORCH_PARAMETERS, ("h", "cell"), lstm_step)
GRU = SequenceCell("gru", 3, TORCH_PARAMETERS, ("h",), gru_step)
CELLS = {cell.name: cell for cell in (LLTM, LSTM, GRU)}
