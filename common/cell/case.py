"""One call of the cell, as `call.Call` describes it. The functions of `call` are offered here, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from . import reference
from .call import (
    LAYOUTS,
    LOW_PRECISION,
    Call,
    difference,
    expected,
    fresh_seed,
    input_gradients,
    nan_in_fresh_memory,
    outputs,
    tensor_difference,
    tolerance,
)

__all__ = [
    "GRADS",
    "INPUTS",
    "LAYOUTS",
    "LOW_PRECISION",
    "Case",
    "Cell",
    "difference",
    "expected",
    "fresh_seed",
    "input_gradients",
    "nan_in_fresh_memory",
    "outputs",
    "tensor_difference",
    "tolerance",
]

INPUTS = ("input", "weights", "bias", "old_h", "old_cell")
GRADS = ("both", "h only", "cell only", "expanded")

Cell = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Case(Call):
    """A call of the cell: batch size, input features, state size, and the fields of `Call`."""

    B: int
    I: int
    S: int
    grads: str = field(default="both", kw_only=True)

    def __str__(self) -> str:
        return self.describe(f"B={self.B}, I={self.I}, S={self.S}")

    @property
    def differentiable(self) -> tuple[str, ...]:
        """All five arguments."""
        return INPUTS

    @property
    def results(self) -> dict[str, tuple[int, ...]]:
        """new_h and new_cell, (B, S) each."""
        return {"new_h": (self.B, self.S), "new_cell": (self.B, self.S)}

    @property
    def longest_sum(self) -> int:
        """Over the columns of X or of z, or over the batch."""
        return max(self.S + self.I, 3 * self.S, self.B)

    def values(self) -> dict[str, Tensor]:
        """The five arguments in float64."""
        B, I, S, bound = self.B, self.I, self.S, 1 / math.sqrt(self.S)
        numbers = torch.Generator().manual_seed(self.seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=numbers, dtype=torch.float64)

        def uniform(*shape: int) -> Tensor:
            return (2 * torch.rand(shape, generator=numbers, dtype=torch.float64) - 1) * bound

        bias = uniform(3 * S)
        bias += self.bias_shift * bias.sign()
        values = (normal(B, I), uniform(3 * S, S + I), bias, normal(B, S), normal(B, S))
        return dict(zip(INPUTS, values, strict=True))

    def reference(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The results and gradients of reference.py, and the spread of the gradients."""
        inputs = {name: tensor.detach() for name, tensor in self.inputs().items()}
        zero = torch.zeros_like(inputs["old_cell"])
        grad_h, grad_cell = (zero if grad is None else grad for grad in self.gradients())
        given = {"grad_h": grad_h, "grad_cell": grad_cell, **inputs}
        new_h, new_cell = reference.forward(**inputs)
        gradients = reference.backward(**given)
        wanted = {f"d_{name}" for name in self.requires_grad}
        results = {"new_h": new_h, "new_cell": new_cell} | {k: v for k, v in gradients.items() if k in wanted}
        return results, reference.spread(**given) if self.dtype in LOW_PRECISION else {}
