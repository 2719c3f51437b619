"""What check.py receives: the learner's folder, with all that a check does with it."""

from __future__ import annotations

from pathlib import Path

import torch

from ...cell.case import Case
from ..failures import require
from ..runner.remote import RemoteFunction
from .extension import Counts, Extension
from .kernels import enough_threads, few_reads, launched_once, on_current_stream, stored_once
from .predictions import Predictions
from .programs import Programs

SMALL = (3, 5, 70)  # B, I, S: two full warps and a partial one
WIDE = (9, 5, 260)  # more units than the largest block has threads
RUNNER = Path(__file__).parents[1] / "runner"
OPERATORS = RUNNER / "operator_probe.py"  # for `work.beside`: registered operators
CALLS = RUNNER / "call_probe.py"  # and how autograd and other threads see a call


class Work(Extension, Programs, Predictions):
    """A learner's folder during a check: its extension, its programs, its answers, and the cell in it."""

    def cell(self, module: str = "lltm", name: str = "lltm") -> RemoteFunction:
        """The learner's cell, called like that of any stage: gradients go through the learner's backward."""
        return getattr(self.load(module), name)

    def by_kernels(self, most: tuple[int, int] = (5, 5)) -> None:
        """Raises `Failure` unless kernels compute the pointwise part of the cell, each element in one thread.

        A call then needs ATen only for allocations and matrix products: at most `most` calls in forward and in
        backward. The kernels must be launched on the current stream. With a batch of more units than a block can
        have threads, a launch has a thread for each, and no thread reads what others need.
        """
        case = self.case(*SMALL)
        unit = case.B * case.S * case.dtype.itemsize
        # new_h and new_cell; d_z and d_old_cell.
        for (name, counted), enough, units in zip(self.count_passes(case).items(), most, (2, 4), strict=True):
            calls = ", ".join(f"{number} {call}" for call, number in counted.calls.items())
            require(
                counted.all_calls <= enough,
                f"{name} calls ATen {counted.all_calls} times where {enough} are enough ({calls}): "
                "the pointwise part belongs in one kernel",
            )
            stored_once(counted.kernels, units * unit, name)
            launched_once(counted.kernels, name)
            enough_threads(counted.kernels, case.B * case.S, name)
            on_current_stream(counted.kernels, name)
        case = self.case(*WIDE)
        # z and old_cell; gates, new_cell and two gradients.
        for (name, counted), units in zip(self.count_passes(case).items(), (4, 6), strict=True):
            what = f"{name}, {case}"
            enough_threads(counted.kernels, case.B * case.S, what)
            few_reads(counted.kernels, units * case.B * case.S, what)

    def count_passes(self, case: Case) -> dict[str, Counts]:
        """What the cell's forward and backward call and launch; some upstream gradients are zero."""
        inputs, grads = list(case.inputs().values()), case.gradients()
        for grad in grads:
            grad[0] = 0  # zeros must be stored, too
        cell = self.cell()
        with self.counting() as forward:
            results = cell(*inputs)
        with self.counting() as back:
            torch.autograd.grad(results, inputs, grads)
        return {"forward": forward, "backward": back}

    def ours(self, folder: Path | None = None) -> Work:
        """A `Work` for a folder of the workbook, by default the stage's, to compare with. The caller closes it."""
        return Work(self.exercise, folder or self.exercise.source.folder, self.target, self.seconds, self.seed)
