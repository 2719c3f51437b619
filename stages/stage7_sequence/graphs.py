"""The rung "graph": the loop over steps as a CUDA graph, which launches all kernels of a sequence at once.

A graph reads and writes the same memory each time. So a call copies its arguments into the graph's tensors, replays
it, and returns copies of its results. There is one graph for each combination of shapes, strides and dtypes.
"""

import torch

from . import _C

operators = getattr(torch.ops, _C.NAMESPACE)
library = torch.library.Library(_C.NAMESPACE, "FRAGMENT")
graphs = {}


class _Graph:
    """A captured call of an operator: its tensors, and the results that it writes."""

    def __init__(self, operator, arguments):
        self.arguments = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            operator(*self.arguments)  # cuBLAS and the allocator prepare themselves
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.results = operator(*self.arguments)

    def replay(self, arguments):
        for own, given in zip(self.arguments, arguments, strict=True):
            if isinstance(given, torch.Tensor):
                own.copy_(given)
        self.graph.replay()
        return tuple(result.clone() for result in self.results)


def _describe(argument):
    if isinstance(argument, torch.Tensor):
        return argument.shape, argument.stride(), argument.dtype, argument.device
    return argument


def _register(name):
    operator = getattr(operators, name)

    def run(*arguments):
        first = next(argument for argument in arguments if isinstance(argument, torch.Tensor))
        if not first.is_cuda:
            raise RuntimeError(
                "lltm: rung 'graph' needs a GPU, because the emulator does not run CUDA graphs of torch"
            )
        if not first.numel():
            return operator(*arguments)  # nothing to compute: torch warns when a captured graph is empty
        key = (name, torch.backends.cuda.matmul.allow_tf32, *map(_describe, arguments))
        with torch.cuda.device(first.device):
            if key not in graphs:
                graphs[key] = _Graph(operator, arguments)
            return graphs[key].replay(arguments)

    library.impl(f"graphed_{name}", run, "CompositeExplicitAutograd")


_register("recurrence")
_register("recurrence_backward")
