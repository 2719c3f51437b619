"""The loop over the steps of a sequence in plain torch operations: in float64, the reference for stage 7."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from .cells import SequenceCell, State


@dataclass(frozen=True)
class Trace:
    """Everything that a loop computed: results, and for each step in the order of computation what it multiplied."""

    outputs: Tensor  # (T, B, S)
    state: State  # (B, S) each
    x: Tensor  # (T, B, G*S)
    old_h: list[Tensor]  # (B, S) each
    r: list[Tensor]  # (B, G*S) each

    @property
    def results(self) -> tuple[Tensor, ...]:
        """Outputs (T, B, S), h (B, S), and the cell (B, S) if there is one."""
        return self.outputs, *self.state


def loop(cell: SequenceCell, given: dict[str, Tensor], lengths: Tensor | None = None, reverse: bool = False) -> Trace:
    """Runs a cell over inputs (T, B, I); `given` are its arguments by name, biases may be missing.

    A row of the batch takes part in the steps before its length. In all others, it keeps its state.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = cell.split(given)
    x = linear(given["inputs"], weight_ih, bias_ih)
    state: State = tuple(given[f"{name}0"] for name in cell.states)
    T, S = x.size(0), state[0].size(1)
    times = list(range(T))[:: -1 if reverse else 1]
    outputs, old_h, recurrent = {}, [], []
    for t in times:
        old_h.append(state[0])
        recurrent.append(linear(state[0], weight_hh, bias_hh))
        new = cell.step(x[t], recurrent[-1], state)
        if lengths is not None:
            is_active = (t < lengths)[:, None]
            new = tuple(torch.where(is_active, late, early) for late, early in zip(new, state, strict=True))
        outputs[t], *_ = state = new
    stacked = torch.stack([outputs[t] for t in range(T)]) if T else x[..., :S]
    return Trace(stacked, state, x, old_h, recurrent)


@torch.no_grad()
def spread(cell: SequenceCell, given: dict[str, Tensor], trace: Trace, d_x: Tensor, d_r: Tensor) -> dict[str, Tensor]:
    """For each gradient that is a sum of products, the root of the sum of their squares, as `d_*`.

    `d_x` and `d_r`, (T, B, G*S) each, are the gradients of the two parts of the pre-activations; those of `r` in the
    order of computation. Rounding each term of a sum changes it by an amount of this order, even if the terms cancel.
    """
    weight_ih, weight_hh, *_ = cell.split(given)
    x2, r2 = d_x.square(), d_r.square()
    old_h = torch.stack(trace.old_h)
    of_parameters = cell.join(
        torch.einsum("tbg,tbi->gi", x2, given["inputs"].square()),
        torch.einsum("tbg,tbs->gs", r2, old_h.square()),
        x2.sum((0, 1)),
        r2.sum((0, 1)),
    )
    of_states = {"inputs": x2 @ weight_ih.square(), "h0": r2[0] @ weight_hh.square()}
    return {f"d_{name}": value.sqrt() for name, value in (of_parameters | of_states).items()}
