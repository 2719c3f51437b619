"""One call of a sequence function, as `common.cell.call.Call` describes it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import ModuleType

import torch
from torch import Tensor

from ..cell.call import LOW_PRECISION, Call, Function
from .cells import CELLS, SequenceCell
from .reference import Trace, loop, spread

GRADS = ("all", "outputs only", "h only", "cell only", "expanded")


@dataclass(frozen=True)
class SequenceCase(Call):
    """A call of a sequence: cell, steps, batch size, input features, state size, and the fields of `Call`.

    `lengths` gives each row of the batch its number of steps. Without `has_bias`, an LSTM or GRU gets no biases.
    `gain` is a factor of all weights.
    """

    cell: str
    T: int
    B: int
    I: int
    S: int
    lengths: tuple[int, ...] | None = field(default=None, kw_only=True)
    reverse: bool = field(default=False, kw_only=True)
    has_bias: bool = field(default=True, kw_only=True)
    gain: float = field(default=1.0, kw_only=True)

    def __str__(self) -> str:
        parts = [f"{self.cell}, T={self.T}, B={self.B}, I={self.I}, S={self.S}"]
        parts += [f"lengths {self.lengths}"] if self.lengths is not None else []
        parts += ["reverse"] if self.reverse else []
        parts += [] if self.has_bias else ["no biases"]
        parts += [f"gain {self.gain:g}"] if self.gain != 1 else []
        return self.describe(", ".join(parts))

    @property
    def kind(self) -> SequenceCell:
        """The cell."""
        return CELLS[self.cell]

    @property
    def differentiable(self) -> tuple[str, ...]:
        """All arguments that are given."""
        return tuple(name for name in self.kind.arguments if self.has_bias or not name.startswith("bias"))

    @property
    def results(self) -> dict[str, tuple[int, ...]]:
        """Outputs (T, B, S), h (B, S), and the cell (B, S) if there is one."""
        return {"outputs": (self.T, self.B, self.S)} | dict.fromkeys(self.kind.states, (self.B, self.S))

    @property
    def longest_sum(self) -> int:
        """Over the state and the inputs, over the gates, or over all rows of all steps."""
        return max(self.S + self.I, self.kind.gates * self.S, self.T * self.B)

    def values(self) -> dict[str, Tensor]:
        """The arguments in float64, with parameters as `torch.nn.LSTM` draws them."""
        rows, bound = self.kind.gates * self.S, 1 / math.sqrt(max(self.S, 1))
        numbers = torch.Generator().manual_seed(self.seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=numbers, dtype=torch.float64)

        def uniform(*shape: int) -> Tensor:
            return (2 * torch.rand(shape, generator=numbers, dtype=torch.float64) - 1) * bound

        inputs = normal(self.T, self.B, self.I)
        weights = self.gain * uniform(rows, self.I), self.gain * uniform(rows, self.S)
        biases = uniform(rows), uniform(rows)
        states = {f"{name}0": normal(self.B, self.S) for name in self.kind.states}
        shifted = (bias + self.bias_shift * biases[0].sign() for bias in biases)  # in the same direction
        found = {"inputs": inputs} | self.kind.join(*weights, *shifted) | states
        return {name: found[name] for name in self.differentiable}

    def length_of_rows(self) -> Tensor | None:
        """The lengths as the sequence functions take them: (B) int64, or None."""
        return None if self.lengths is None else torch.tensor(self.lengths, dtype=torch.int64, device=self.device)

    def bind(self, module: ModuleType, rung: str | None = None) -> Function:
        """A stage's function of this cell, with the case's lengths and direction, on a rung; returns a flat tuple."""
        sequence = getattr(module, f"{self.cell}_sequence")
        options = {"lengths": self.length_of_rows(), "reverse": self.reverse, "rung": rung}

        def function(*arguments: Tensor) -> tuple[Tensor, ...]:
            given = dict(zip(self.differentiable, arguments, strict=True))
            outputs, state = sequence(*(given.get(name) for name in self.kind.arguments), **options)
            return (outputs, *state) if isinstance(state, tuple) else (outputs, state)

        return function

    def equations(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        """The plain loop, in the dtype of the arguments."""
        return self._loop(dict(zip(self.differentiable, arguments, strict=True))).results

    def reference(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The results of the loop in float64, and their gradients by autograd."""
        given = {name: tensor.detach().double().requires_grad_() for name, tensor in self.inputs().items()}
        trace = self._loop(given)
        pairs = zip(trace.results, self.gradients(), strict=True)
        heads, grads = zip(*((result, grad.double()) for result, grad in pairs if grad is not None), strict=True)
        leaves = [*given.values(), trace.x, *trace.r]
        found = torch.autograd.grad(heads, leaves, grads, materialize_grads=True)
        gradients = {f"d_{name}": d for name, d in zip(given, found, strict=False) if name in self.requires_grad}
        results = {name: tensor.detach() for name, tensor in zip(self.results, trace.results, strict=True)}
        d_x, *d_r = found[len(given) :]
        needs_spread = self.dtype in LOW_PRECISION and d_r
        return results | gradients, spread(self.kind, given, trace, d_x, torch.stack(d_r)) if needs_spread else {}

    def _loop(self, given: dict[str, Tensor]) -> Trace:
        return loop(self.kind, given, self.length_of_rows(), self.reverse)
