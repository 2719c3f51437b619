"""The checks of a stage that offers whole sequences, `lltm_sequence`, `lstm_sequence` and `gru_sequence`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType

import torch

from .. import stages
from ..build import modules
from ..cell.call import LAYOUTS, Call, Function, difference, outputs
from ..sequence.case import GRADS, SequenceCase
from ..sequence.cells import CELLS
from ..sequence.rungs import RUNGS, rungs_of
from .checks import (
    assert_refused,
    gradcheck,
    not_finite,
    same_bits,
    second_derivatives,
    second_device,
    side_stream,
)
from .integration import (
    autocast,
    chosen_rung,
    graph_capture,
    opcheck,
    saved_memory,
    whole_under_compile,
)
from .subject import Check, Subject

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
class SequenceSubject(Subject):
    """One rung of a stage's sequences. All its cases have the same seed."""

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

    def checks(self) -> Sequence[Check]:
        """Those of every function, in one dtype where the dtype does not matter; and what sequences add."""
        found: list[Check] = [not_finite, refusals, same_bits, saved_memory]
        if self.rung == RUNGS[self.target][0]:
            found.append(chosen_rung)
        if self.dtype == torch.float64:
            found += [gradcheck, second_derivatives]
        if self.dtype == torch.float32:
            found += [opcheck, whole_under_compile, autocast]
            found += [tf32] if self.target != "host" else []
            found += [graph_capture] if self.rung != "graph" else []  # a graph cannot be captured in another
            found += [side_stream, second_device]
        return found


def fixed_seed(size: tuple[int, ...]) -> dict[str, int]:
    """A seed for a size of which 1 % of all seeds fail even the plain loop in torch, for the field of `Call`.

    The error of a sum that cancels is allowed relative to the mean of a tensor: a single number has no other's mean.
    """
    return {"seed": 0} if size == ONE_OF_EACH else {}


def tf32(subject: SequenceSubject) -> None:
    """With TF32 allowed, products of float32 are within the rounding of TF32."""
    with tf32_allowed():
        for cell in CELLS:
            for case in (subject.small_case(cell), subject.case(cell, 2, 9, 3, 40)):
                message = difference(case, outputs(subject.function(case), case), tf32=True)
                assert message is None, message


@contextmanager
def tf32_allowed() -> Iterator[None]:
    """Allows TF32 for products of float32 on GPUs."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def refusals(subject: SequenceSubject) -> None:
    """Invalid arguments are refused with an error that names the argument."""
    for cell in CELLS:
        case = subject.small_case(cell)
        function, (T, B, I, S) = subject.function(case), SMALL_SIZE
        G = case.kind.gates
        good = {name: tensor.detach() for name, tensor in case.inputs().items()}
        other_dtype = torch.float32 if subject.dtype == torch.float64 else torch.float64
        wrong_shapes = {
            "inputs": (T, B, I + 1), "weights": (G * S, S), "weight_ih": (G * S, I + 1), "weight_hh": (S, S),
            "h0": (B + 1, S), "cell0": (1, S),
        }  # fmt: skip
        for name, tensor in good.items():
            # Arguments from which the sizes are taken do not match one another; the error may name either of the two.
            names = {"inputs": tuple(good), "weight_ih": ("weight_ih", "inputs"), "weight_hh": tuple(good)}
            either = names.get(name, (name, "inputs") if name == "weights" else (name,))
            wrong = tensor.new_zeros(wrong_shapes.get(name, (1,)))
            assert_refused(function, {**good, name: wrong}, either, "shape")
            assert_refused(function, {**good, name: tensor[None]}, either, "shape")
            others = tuple(good) if name == "inputs" else (name,)  # then all others differ from the inputs
            assert_refused(function, {**good, name: tensor.to(other_dtype)}, others, "dtype")
            assert_refused(function, {**good, name: tensor.to("meta")}, others, "is on")
        assert_refused(function, {name: tensor.long() for name, tensor in good.items()}, tuple(good), "dtype")
        refused_lengths(subject, case, good)
        unknown_rung = replace(subject, rung="ladder")
        assert_refused(unknown_rung.function(case), good, ("rung",), "ladder")


def refused_lengths(subject: SequenceSubject, case: SequenceCase, good: dict[str, torch.Tensor]) -> None:
    """Lengths of another batch or dtype, or on another device, are refused."""
    sequence, given = getattr(subject.module, f"{case.cell}_sequence"), list(good.values())
    fits = torch.tensor(LENGTHS, device=subject.device)
    for lengths, what in (
        (fits[:-1], "shape"),
        (fits[None], "shape"),
        (fits.int(), "dtype"),
        (fits.to("meta"), "is on"),
    ):

        def function(*arguments: torch.Tensor, lengths: torch.Tensor = lengths) -> object:
            return sequence(*arguments, lengths=lengths, rung=subject.rung)

        assert_refused(function, dict(zip(good, given, strict=True)), ("lengths",), what)


def make_subjects(number: int, target: str, device: str, dtype: torch.dtype, seed: int) -> list[SequenceSubject]:
    """The rungs of a stage's sequences on a target."""
    module = modules.load_stage(number, target)
    return [SequenceSubject(number, target, device, dtype, module, rung, seed) for rung in rungs_of(target, device)]
