"""The checks of a stage that offers whole sequences, `lltm_sequence`, `lstm_sequence` and `gru_sequence`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from ..build import modules
from ..cell.call import difference, outputs
from ..sequence.case import SequenceCase
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
    transforms,
)
from .integration import (
    autocast,
    chosen_rung,
    graph_capture,
    opcheck,
    saved_memory,
    whole_under_compile,
)
from .rung import LENGTHS, SMALL_SIZE, Rung
from .subject import Check


@dataclass(frozen=True)
class SequenceSubject(Rung):
    """One rung of a stage's sequences, with the checks that it must pass."""

    def checks(self) -> Sequence[Check]:
        """Those of every function, in one dtype where the dtype does not matter; and what sequences add."""
        found: list[Check] = [not_finite, refusals, same_bits, saved_memory]
        if self.rung == RUNGS[self.target][0]:
            found.append(chosen_rung)
        if self.dtype == torch.float64:
            found += [gradcheck, second_derivatives, transforms]
        if self.dtype == torch.float32:
            found += [opcheck, whole_under_compile, autocast]
            found += [tf32] if self.target != "host" else []
            found += [graph_capture] if self.rung != "graph" else []  # a graph cannot be captured in another
            found += [side_stream, second_device]
        return found


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
