"""The checks of a stage that offers the cell, `lltm(input, weights, bias, old_h, old_cell)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .. import stages
from ..build import modules
from ..cell.call import Call, Function
from ..cell.case import GRADS, INPUTS, LAYOUTS, Case, Cell, fresh_seed
from .checks import (
    assert_refused,
    gradcheck,
    not_finite,
    second_derivatives,
    second_device,
    side_stream,
    transforms,
)
from .subject import Check, Subject

# B, I, S: a single row, a single unit, sizes that are no multiple of a warp, more units than a block has threads,
# more rows than the 65535 blocks that a grid may have in y, and an empty batch.
CHECKED_SIZES = ((3, 5, 70), (1, 4, 33), (5, 3, 1), (2, 1, 1025), (65537, 1, 2), (0, 4, 8), (16, 32, 128))
SMALL_SIZE = (3, 5, 70)


@dataclass(frozen=True)
class CellSubject(Subject):
    """One stage's cell. All its cases have the same seed."""

    lltm: Cell
    seed: int

    def function(self, case: Call) -> Function:
        """The cell."""
        return self.lltm

    def equations(self, case: Call) -> Function:
        """Stage 1's equations."""
        return modules.load_stage(1).equations

    def case(self, B: int, I: int, S: int, **changes: object) -> Case:
        """A case of this subject's device and dtype."""
        return Case(B, I, S, **{"dtype": self.dtype, "device": self.device, "seed": self.seed, **changes})

    def small_case(self, **changes: object) -> Case:
        """A case of three rows."""
        return self.case(*SMALL_SIZE, **changes)

    def tiny_cases(self) -> list[Case]:
        """Three sizes, each in another layout."""
        sizes = {"contiguous": (2, 3, 4), "transposed": (3, 1, 5), "sliced": (1, 2, 1)}
        return [self.case(*size, dtype=torch.float64, layout=layout) for layout, size in sizes.items()]

    def cases(self) -> dict[str, list[Case]]:
        """The calls whose outputs and gradients must agree with the reference, by the name of what they test."""
        wanted = [(name,) for name in INPUTS] + [("weights", "bias"), ()]
        return {
            "sizes": size_cases(self),
            "layouts of inputs and gradients": [self.small_case(layout=layout) for layout in LAYOUTS],
            "gradients for some outputs": [self.small_case(grads=grads) for grads in GRADS],
            "gradients of some inputs": [self.small_case(requires_grad=names) for names in wanted],
            "saturated gates": [self.small_case(bias_shift=1e4)],
        }

    def checks(self) -> Sequence[Check]:
        """The checks of every function, and what the cell refuses.

        Those of derivatives compute in float64 whatever the dtype, so one of the stage's dtypes has them, the last.
        """
        is_last = self.label == stages.get_stage(self.stage).dtypes[-1]
        derivatives = (gradcheck, second_derivatives, transforms) if is_last else ()
        return not_finite, *derivatives, refusals, side_stream, second_device


def sizes_for(subject: CellSubject) -> list[tuple[int, int, int]]:
    """All sizes. On the emulator, the two largest are for float32 alone; other dtypes use smaller sizes instead.

    One dtype is enough to show that a kernel handles more rows than a grid has blocks in y (65535) and more units
    than the largest block has threads (1024). The dtypes differ in how many units a block covers, at most 256: 32
    lanes with vectors of 8.
    """
    if subject.target != "emulator" or subject.dtype == torch.float32:
        return list(CHECKED_SIZES)
    return [(min(B, 100), I, min(S, 257)) for B, I, S in CHECKED_SIZES]


def size_cases(subject: CellSubject) -> list[Case]:
    """A case for each size. On the emulator, d_weights of more than 1024 units is left to a smaller size.

    It has 3 S (S + I) numbers, which take the emulator seconds. The kernels that a stage may have for it divide it
    into tiles of far fewer units than 257, so they do at 257 what they do at 1025.
    """
    cases = []
    for B, I, S in sizes_for(subject):
        if subject.target == "emulator" and S > 1024:
            others = tuple(name for name in INPUTS if name != "weights")
            cases += [subject.case(B, I, S, requires_grad=others), subject.case(B, I, 257)]
        else:
            cases.append(subject.case(B, I, S))
    return cases


def refusals(subject: CellSubject) -> None:
    """Invalid arguments are refused with an error that names the argument."""
    B, I, S = SMALL_SIZE
    good = {name: tensor.detach() for name, tensor in subject.small_case().inputs().items()}
    other_dtype = torch.float32 if subject.dtype == torch.float64 else torch.float64
    wrong_shapes = {
        "input": (B, I + 1), "weights": (3 * S, S), "bias": (1,), "old_h": (B + 1, S), "old_cell": (1, S)
    }  # fmt: skip
    for name, tensor in good.items():
        # An input of another width does not match the weights; the error may name either of the two.
        names = ("input", "weights") if name == "input" else (name,)
        assert_refused(subject.lltm, {**good, name: tensor.new_zeros(wrong_shapes[name])}, names, "shape")
        assert_refused(subject.lltm, {**good, name: tensor[None]}, (name,), "shape")
        names = tuple(good) if name == "input" else (name,)  # then all others differ from the input
        assert_refused(subject.lltm, {**good, name: tensor.to(other_dtype)}, names, "dtype")
        assert_refused(subject.lltm, {**good, name: tensor.to("meta")}, names, "is on")
    assert_refused(subject.lltm, {name: tensor.long() for name, tensor in good.items()}, tuple(good), "dtype")


def make_subject(number: int, target: str, device: str, dtype: torch.dtype, seed: int | None = None) -> CellSubject:
    """One stage's cell, built and loaded. Without a seed, each call draws one; failures name it."""
    seed = fresh_seed() if seed is None else seed
    return CellSubject(number, target, device, dtype, modules.load_stage(number, target).lltm, seed)
