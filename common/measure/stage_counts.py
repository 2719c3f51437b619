"""The counts of a stage's kernels on the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import pointwise
from ..emulator import Counted, collect_counts


def count_stage(number: int, B: int = 64, S: int = 512, dtype: str = "float32", block: int | None = None) -> Counted:
    """The counts of one forward and one backward pass of a stage's kernels alone, without its matrix products."""
    from .. import stages
    from ..build import modules
    from . import pointwise

    cell, inputs = pointwise.from_stage(stages.get_stage(number), "emulator"), make_inputs(B, S, dtype)
    with collect_counts(modules.load_stage(number, "emulator"), block=block) as counted:
        cell.backward(inputs, cell.forward(inputs))
    return counted


def make_inputs(B: int, S: int, dtype: str = "float32", device: str = "cpu") -> pointwise.PointwiseInputs:
    """Inputs of that size for the pointwise part: z (B, 3S), old_cell, grad_h and grad_cell (B, S)."""
    import torch

    from . import pointwise

    [inputs] = pointwise.make_pointwise_inputs(B, S, device, count=1)
    tensors = (inputs.z, inputs.old_cell, inputs.grad_h, inputs.grad_cell)
    return pointwise.PointwiseInputs(inputs.case, *(tensor.to(getattr(torch, dtype)) for tensor in tensors))
