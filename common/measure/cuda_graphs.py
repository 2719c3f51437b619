"""A cell under CUDA graphs, made by `torch.cuda.make_graphed_callables`: one launch replays those of a whole pass."""

from __future__ import annotations

import warnings

import torch

from ..cell.case import Cell


class CapturedCell:
    """A cell whose calls replay graphs: one of its forward and one of its backward pass for each tensor of weights.

    As in a model, weights and bias are read where they are, and the other inputs are copied into the graph's memory.
    The outputs lie there, too, and the next call with the same weights overwrites them.
    """

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.kind: list[tuple] = []  # the shapes of the arguments, and which of them need gradients
        self.captured: dict[int, Cell] = {}  # by the address of the weights, all for arguments of this kind

    def __call__(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """new_h and new_cell [B,S]. The first call with these weights captures its graphs, which takes a second."""
        _, weights, *_ = arguments
        kind = [(tensor.shape, tensor.requires_grad) for tensor in arguments]
        if kind != self.kind:
            self.kind = kind
            self.captured.clear()
        if weights.data_ptr() not in self.captured:
            self.captured[weights.data_ptr()] = self.capture(*arguments)
        return self.captured[weights.data_ptr()](*arguments)

    def capture(
        self,
        input: torch.Tensor,
        weights: torch.Tensor,
        bias: torch.Tensor,
        old_h: torch.Tensor,
        old_cell: torch.Tensor,
    ) -> Cell:
        """The graphs for these weights. Of an argument that lies in the graph's memory already nothing is copied.

        All are leaves of their own: gradients of the caller's leaves were computed on another stream before, and
        autograd would synchronize with it, which a capture does not allow.
        """
        copies = (input.clone(), weights, bias, old_h.clone(), old_cell.clone())
        leaves = (tensor.detach().requires_grad_(tensor.requires_grad) for tensor in copies)
        with warnings.catch_warnings():
            # The warm-up and the capture are on streams of their own, which autograd reports.
            warnings.filterwarnings("ignore", message="The AccumulateGrad node's stream")
            return torch.cuda.make_graphed_callables(self.cell, tuple(leaves))
