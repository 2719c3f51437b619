"""Modules and functions of the learner's process, called from here: numbers go there, numbers come back.

A result's gradients are asked of the learner's own backward, in that process, when they are needed here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..failures import Failure
from .process import Process
from .wire import leaves

CurrentProcess = Callable[[], Process]  # the current process of the learner: a restart replaces it


class RemoteModule:
    """A module in the learner's process: `module.function(...)` calls there."""

    def __init__(self, process: CurrentProcess, name: str) -> None:
        self._process, self._name = process, name

    def __getattr__(self, name: str) -> RemoteFunction:
        return RemoteFunction(self._process, self._name, name)

    def __dir__(self) -> list[str]:
        return self._process().ask("names", module=self._name)


class RemoteFunction:
    """A function in the learner's process. Its results are copied here; its backward computes gradients there."""

    def __init__(self, process: CurrentProcess, module: str, name: str) -> None:
        self.process, self.module, self.name = process, module, name
        self.may_change_arguments = False
        self.same: list[int | None] = []  # for each tensor of the last result: which argument it is, if one
        self.graph: int | None = None  # of the last call

    @property
    def doc(self) -> str:
        """The docstring of the function; pybind11 writes the signature there."""
        return self.process().ask("doc", module=self.module, name=self.name)

    def __call__(self, *arguments: object, **keywords: object) -> object:
        tensors = [one for one in leaves([list(arguments), list(keywords.values())]) if isinstance(one, Tensor)]
        found = self.process().ask(
            "call",
            module=self.module,
            name=self.name,
            arguments=list(arguments),
            keywords=keywords,
            may_change=self.may_change_arguments,
        )
        if found["changed"]:
            which = ", ".join(f"number {k + 1}" for k in found["changed"])
            raise Failure(
                f"{self.name} modifies its arguments (tensor {which} of its arguments): the caller still needs them"
            )
        self.same, self.graph = found["same"], found["graph"]
        value = found["value"]
        needing = [one for one in tensors if one.requires_grad]
        if found["graph"] is None or not needing or not torch.is_grad_enabled():
            return _map(value, lambda tensor: tensor.detach())
        outputs = [one for one in leaves(value) if isinstance(one, Tensor)]
        attached = iter(_Attach.apply(self.process(), found["graph"], outputs, *needing))
        return _map(value, lambda tensor: next(attached))

    def second_derivatives(self, *gradients: Tensor) -> list[Tensor | None]:
        """Of the last call, with these upstream gradients: the gradient of the sum of its squared gradients.

        Raises `LearnerError` where the learner's code refuses to be differentiated twice.
        """
        return self.process().ask("second", graph=self.graph, gradients=list(gradients))

    def second_of_pair(self, penalised: int, asked: int, squared: bool) -> Tensor | None:
        """Of the last call: the gradient for one argument of a loss that contains the gradient for another.

        The loss is the sum of the results, perhaps `squared`, and of the squared gradient for the argument
        `penalised`. Arguments are given by number, among those that require a gradient. Raises `LearnerError` as
        `second_derivatives` does.
        """
        return self.process().ask(
            "second_of_pair", graph=self.graph, penalised=penalised, asked=asked, squared=squared
        )


class _Attach(torch.autograd.Function):
    """Connects results of the learner's process with the arguments here, so that backward runs there."""

    @staticmethod
    def forward(ctx, process, graph, outputs, *inputs):
        ctx.process, ctx.graph = process, graph
        ctx.set_materialize_grads(False)
        results = tuple(output.detach() for output in outputs)
        ctx.mark_non_differentiable(*(r for r, o in zip(results, outputs, strict=True) if not o.requires_grad))
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        return None, None, None, *ctx.process.ask("backward", graph=ctx.graph, gradients=list(gradients))


def _map(value: object, change: Callable[[Tensor], Tensor]) -> object:
    """The tree with each tensor changed."""
    if isinstance(value, dict):
        return {key: _map(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map(one, change) for one in value)
    return change(value) if isinstance(value, Tensor) else value
