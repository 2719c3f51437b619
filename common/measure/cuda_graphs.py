"""A function under CUDA graphs, by `torch.cuda.make_graphed_callables`: one launch replays those of a whole pass."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch

from ..cell.call import Function


class CapturedFunction:
    """A function whose calls replay graphs: one of each pass, for each set of parameters.

    As in a model, parameters are read where they are, and the other inputs are copied into the graph's memory.
    The outputs lie there, too, and the next call with the same parameters overwrites them.
    """

    def __init__(self, function: Function, parameters: Sequence[int]) -> None:
        """`parameters` are the positions of the parameters among the arguments; at least one."""
        self.function, self.parameters = function, tuple(parameters)
        self.kind: list[tuple] = []  # the shapes of the arguments, and which of them need gradients
        self.captured: dict[
            int, Function
        ] = {}  # by the address of the first parameter, all for arguments of this kind

    def __call__(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The results. The first call with these parameters captures its graphs, which takes a second."""
        address = arguments[self.parameters[0]].data_ptr()
        kind = [(tensor.shape, tensor.requires_grad) for tensor in arguments]
        if kind != self.kind:
            self.kind = kind
            self.captured.clear()
        if address not in self.captured:
            self.captured[address] = self.capture(arguments)
        return self.captured[address](*arguments)

    def capture(self, arguments: Sequence[torch.Tensor]) -> Function:
        """The graphs for these parameters. Of an argument that lies in the graph's memory already nothing is copied.

        All are leaves of their own: gradients of the caller's leaves were computed on another stream before, and
        autograd would synchronize with it, which a capture does not allow.
        """
        copies = (tensor if k in self.parameters else tensor.clone() for k, tensor in enumerate(arguments))
        originals = zip(copies, arguments, strict=True)
        leaves = (copy.detach().requires_grad_(given.requires_grad) for copy, given in originals)
        with warnings.catch_warnings():
            # The warm-up and the capture are on streams of their own, which autograd reports.
            warnings.filterwarnings("ignore", message="The AccumulateGrad node's stream")
            return torch.cuda.make_graphed_callables(self.function, tuple(leaves))
