"""One rung of a stage's sequences as the subject of a check: its function, and the cases that it must agree on."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch

from .. import stages
from ..cell.call import LAYOUTS, Call, Function
from ..sequence.case import GRADS, SequenceCase
from ..sequence.cells import CELLS
from ..sequence.rungs import RUNGS
from .subject import Subject

# T, B, I, S: nothing of each, one of each, units that fill no vector of 16 bytes, several chains of at most 8 rows,
# sizes that are no multiple of anything, and many steps.
ONE_OF_EACH = (1, 1, 1, 1)
CHECKED_SIZES = (
    (0, 3, 2, 4), (3, 0, 2, 4), (3, 2, 4, 0), (2, 3, 0, 5), ONE_OF_EACH, (4, 1, 3, 33), (3, 17, 2, 40),
    (2, 5, 7, 70), (21, 2, 1, 8),
)  # fmt: skip
# On a GPU, also a state that needs many blocks, and more rows than fit at once.
LARGE_SIZES = ((5, 70, 9, 300), (3, 9, 4, 1025), (2, 3000, 5, 64))
SMALL_SIZE = (4, 3, 5, 22)
LENGTHS = (3, 0, 4)  # of the rows of SMALL_SIZE


@dataclass(frozen=True)
class Rung(Subject):
    """One rung of a stage's sequences, without the checks. All its cases have the same seed."""

    module: ModuleType
    rung: str
    seed: int

    @property
    def label(self) -> str:
        """The dtype and the rung."""
        return f"{super().label}, rung {self.rung}"

    def function(self, case: Call) -> Function:
        """The stage's function of the case's cell, on this rung."""
        return case.bind(self.module, self.rung)

    def equations(self, case: Call) -> Function:
        """The plain loop in the case's dtype."""
        return case.equations

    def case(self, cell: str, *size: int, **changes: object) -> SequenceCase:
        """A case of this subject's device and dtype; the size is T, B, I, S."""
        return SequenceCase(cell, *size, **{"dtype": self.dtype, "device": self.device, "seed": self.seed, **changes})

    def small_case(self, cell: str | None = None, **changes: object) -> SequenceCase:
        """A case of three rows; without a cell, of one that depends on the dtype and the rung."""
        return self.case(cell or self.cell(0), *SMALL_SIZE, **changes)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the rows of a small case: one of no steps, one of some and one of all."""
        return LENGTHS

    def cell(self, k: int) -> str:
        """The cell whose turn it is: each dtype and rung begins with another, so that together they meet all."""
        turn = stages.get_stage(self.stage).dtypes.index(super().label) + RUNGS[self.target].index(self.rung)
        return list(CELLS)[(turn + k) % len(CELLS)]

    def tiny_cases(self) -> list[SequenceCase]:
        """Each cell, in another layout, direction, and with or without lengths."""
        tiny = {"dtype": torch.float64}
        return [
            self.case("lltm", 3, 2, 2, 3, **tiny),
            self.case("lstm", 2, 2, 1, 2, layout="transposed", reverse=True, **tiny),
            self.case("gru", 3, 2, 1, 2, layout="sliced", lengths=(1, 3), **tiny),
        ]

    def large_sizes(self) -> list[tuple[int, ...]]:
        """The large sizes, with a state that the rung can hold: a persistent kernel keeps the weights on chip."""
        is_persistent, is_double = self.rung in ("grid", "cluster"), self.dtype == torch.float64
        largest = 128 if is_persistent and is_double else 300 if self.rung == "cluster" else 1025
        return [(T, B, I, min(S, largest)) for T, B, I, S in LARGE_SIZES]

    def cases(self) -> dict[str, list[SequenceCase]]:
        """The calls whose results and gradients must agree with the reference, by the name of what they test."""
        some = [self.cell(k) for k in range(len(CELLS))]
        small, sizes = self.small_case, [*CHECKED_SIZES, *(self.large_sizes() if self.target == "cuda" else ())]
        some_inputs = [(cell, name) for cell in some for name in CELLS[cell].arguments]
        if self.target == "emulator":
            some_inputs = some_inputs[:: len(CELLS) + 1]
        return {
            "cells": [small(cell) for cell in CELLS],
            "sizes": [self.case(self.cell(k), *size, **fixed_seed(size)) for k, size in enumerate(sizes)],
            "layouts of inputs and gradients": [
                small(self.cell(k), layout=layout) for k, layout in enumerate(LAYOUTS)
            ],
            "gradients for some outputs": [small("lstm", grads=grads) for grads in GRADS],
            "gradients of some inputs": [
                *(small(cell, requires_grad=(name,)) for cell, name in some_inputs),
                small(requires_grad=()),
            ],
            "variable lengths": [small(cell, lengths=LENGTHS) for cell in CELLS],
            "from the last step to the first": [
                small("lltm", reverse=True), small("lstm", reverse=True, lengths=LENGTHS),
                small("gru", reverse=True, lengths=LENGTHS),
            ],
            "without biases": [small("lstm", has_bias=False), small("gru", has_bias=False)],
            "saturated gates": [small(cell, bias_shift=1e4) for cell in some[:1]],
        }  # fmt: skip


def fixed_seed(size: tuple[int, ...]) -> dict[str, int]:
    """A seed for a size of which 1 % of all seeds fail even the plain loop in torch, for the field of `Call`.

    The error of a sum that cancels is allowed relative to the mean of a tensor: a single number has no other's mean.
    """
    return {"seed": 0} if size == ONE_OF_EACH else {}
