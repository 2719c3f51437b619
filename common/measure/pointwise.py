"""The pointwise part alone: eager, torch.compile, Triton and each stage's kernels behind one interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..build.modules import load_stage
from ..cell import reference
from ..cell.case import Case, tensor_difference, tolerance
from ..stages import Stage
from .implementations import WrongResult, load_triton_module

ATEN = torch.ops.aten


@dataclass(frozen=True)
class PointwiseInputs:
    """The inputs of one call: z (B, 3S); old_cell, grad_h and grad_cell, (B, S) each; and the case for messages."""

    case: Case
    z: Tensor
    old_cell: Tensor
    grad_h: Tensor
    grad_cell: Tensor


@dataclass(frozen=True)
class PointwisePart:
    """The pointwise part of an implementation.

    `forward(inputs)` returns new_h, new_cell and what `backward` needs beside them. `backward(inputs, results)`, with
    the results of `forward`, returns d_z and d_old_cell.
    """

    name: str
    forward: Callable[[PointwiseInputs], tuple[Tensor, ...]]
    backward: Callable[[PointwiseInputs, tuple[Tensor, ...]], tuple[Tensor, Tensor]]
    stage: Stage | None = None


def pointwise_equations(z: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The part of the cell after the matrix product, as in stage 1."""
    z_i, z_o, z_g = z.chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(z_g) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def pointwise_baselines() -> list[PointwisePart]:
    """Eager PyTorch, the same function under torch.compile, and Triton if it is installed."""

    def differentiated(name: str, function: Callable) -> PointwisePart:
        def forward(given: PointwiseInputs) -> tuple[Tensor, ...]:
            z, old_cell = given.z.detach().requires_grad_(), given.old_cell.detach().requires_grad_()
            return *function(z, old_cell), z, old_cell

        def backward(given: PointwiseInputs, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            new_h, new_cell, *leaves = results
            return torch.autograd.grad((new_h, new_cell), leaves, (given.grad_h, given.grad_cell))

        return PointwisePart(name, forward, backward)

    compiled = torch.compile(pointwise_equations, dynamic=False)
    found = [differentiated("eager", pointwise_equations), differentiated("torch.compile", compiled)]
    return [*found, from_triton(module)] if (module := load_triton_module()) else found


def from_triton(module: ModuleType) -> PointwisePart:
    """The kernels in Triton, which save z, while stages 3 to 5 save the gates."""

    def forward(given: PointwiseInputs) -> tuple[Tensor, ...]:
        return module.pointwise(given.z, given.old_cell)

    def backward(given: PointwiseInputs, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        return module.pointwise_backward(given.grad_h, given.grad_cell, given.z, results[1])

    return PointwisePart("Triton", forward, backward)


class WithoutProducts(TorchDispatchMode):
    """Replaces the results of the cell's matrix products with existing tensors, so that only its kernels run."""

    def __init__(self, X: Tensor, z: Tensor) -> None:
        super().__init__()
        self.answers = {ATEN.cat.default: X, ATEN.addmm.default: z, ATEN.mm.default: X}
        self.asked: dict[object, tuple] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in self.answers:
            self.asked[function] = args
            return self.answers[function]
        return function(*args, **(kwargs or {}))


def from_stage(stage: Stage, target: str = "cuda") -> PointwisePart:
    """The kernels of a stage: its operators, or the forward and backward of its binding."""
    module = load_stage(stage.number, target)
    if hasattr(module, "operators"):
        return from_operators(f"stage {stage.number}", module.operators, stage)
    return from_binding(stage, module._C)


def from_operators(
    name: str, operators: ModuleType, stage: Stage | None = None, needs_bias: bool = False
) -> PointwisePart:
    """The operators for the pointwise part; with `needs_bias`, including the sum for the bias's gradient.

    If the first operator returns the gates, the second takes them as input; otherwise it takes z.
    """
    keeps_gates = len(operators.pointwise.default._schema.returns) == 3
    asked = [argument.name for argument in operators.pointwise_backward.default._schema.arguments]
    needs = ((needs_bias, True),) if "needs" in asked else ()  # of d_bias and d_old_cell

    def forward(given: PointwiseInputs) -> tuple[Tensor, ...]:
        return operators.pointwise(given.z, given.old_cell)

    def backward(given: PointwiseInputs, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        new_cell, saved = results[1], results[2] if keeps_gates else given.z
        d_z, *_, d_old_cell = operators.pointwise_backward(given.grad_h, given.grad_cell, saved, new_cell, *needs)
        return d_z, d_old_cell

    return PointwisePart(name, forward, backward, stage)


def small_cell_from_stage(stage: Stage, target: str = "cuda") -> PointwisePart:
    """The whole cell of a stage that has kernels for small ones, as the two passes of a `Pointwise`.

    Two columns of z are the input, grad_h is old_h; weights and bias are numbers between -1 and 1.
    """
    operators = load_stage(stage.number, target).operators

    def arguments(given: PointwiseInputs) -> tuple[Tensor, ...]:
        S, like = given.old_cell.size(1), {"device": given.z.device, "dtype": given.z.dtype}
        weights = torch.linspace(-1, 1, 3 * S * (S + 2), **like).reshape(3 * S, S + 2)
        return given.z[:, :2], weights, torch.linspace(-1, 1, 3 * S, **like), given.grad_h

    def forward(given: PointwiseInputs) -> tuple[Tensor, ...]:
        return operators.cell(*arguments(given), given.old_cell)

    def backward(given: PointwiseInputs, results: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (_, new_cell, z), (input, weights, _, old_h) = results, arguments(given)
        return operators.cell_backward(given.grad_h, given.grad_cell, input, weights, old_h, new_cell, z, [True] * 5)

    return PointwisePart(f"stage {stage.number}, small", forward, backward, stage)


def launcher_for(stage: Stage, names: Sequence[str], target: str) -> PointwisePart:
    """The code that launches these two kernels of a stage: its pointwise part, or a small cell."""
    return (small_cell_from_stage if tuple(names) == stage.small_kernels else from_stage)(stage, target)


def from_binding(stage: Stage, binding: ModuleType) -> PointwisePart:
    """A binding's forward and backward without their matrix products."""

    def placeholders(given: PointwiseInputs) -> tuple[Tensor, ...]:
        """Input, weights, bias, old_h and X of one feature: of the right shapes, with values that are never read."""
        (B, S), one = given.old_cell.shape, given.z.new_empty(())
        return tuple(one.expand(shape) for shape in ((B, 1), (3 * S, S + 1), (3 * S,), (B, S), (B, S + 1)))

    def forward(given: PointwiseInputs) -> tuple[Tensor, ...]:
        *arguments, X = placeholders(given)
        with WithoutProducts(X, given.z):
            new_h, new_cell, _, gates = binding.forward(*arguments, given.old_cell)
        return new_h, new_cell, gates

    def backward(given: PointwiseInputs, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        _, weights, _, _, X = placeholders(given)
        _, new_cell, gates = results
        with WithoutProducts(X, given.z) as products:
            needs = (True, False, False, False, True)  # d_z is visible as an argument of the product for d_input
            *_, d_old_cell = binding.backward(given.grad_h, given.grad_cell, weights, X, gates, new_cell, needs)
        d_z, _ = products.asked[ATEN.mm.default]
        return d_z, d_old_cell

    return PointwisePart(f"stage {stage.number}", forward, backward, stage)


def make_pointwise_inputs(B: int, S: int, device: str, count: int = 3) -> list[PointwiseInputs]:
    """A few sets of inputs of one size, which the calls use in turn."""
    sets = []
    for seed in range(count):
        numbers = torch.Generator(device).manual_seed(seed)
        shapes = ((B, 3 * S), (B, S), (B, S), (B, S))
        tensors = [torch.randn(shape, generator=numbers, device=device) for shape in shapes]
        sets.append(PointwiseInputs(Case(B, 0, S, device=device, seed=seed), *tensors))
    return sets


def check_kernel_results(
    implementation: PointwisePart,
    given: PointwiseInputs,
    results: Sequence[Tensor],
    gradients: Sequence[Tensor],
    when: str,
) -> None:
    """Raises `WrongResult` unless both passes agree with the float64 reference."""
    wanted = (
        *reference.pointwise_forward(given.z, given.old_cell),
        *reference.pointwise_backward(given.grad_h, given.grad_cell, given.z, given.old_cell),
    )
    names, got = ("new_h", "new_cell", "d_z", "d_old_cell"), (*results[:2], *gradients)
    for name, tensor, want in zip(names, got, wanted, strict=True):
        problem = tensor_difference(name, tensor.detach(), want, given.case, tolerance(given.case))
        if problem:
            raise WrongResult(f"{implementation.name} is not timed: {when}, {problem} (pointwise part, {given.case})")
