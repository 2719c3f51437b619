"""One call of a differentiable function: its inputs, its results, and how they differ from the reference.

A subclass of `Call` describes the function: the cell's is `case.Case`, that of a sequence `common.sequence.case`.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

LAYOUTS = ("contiguous", "transposed", "sliced", "offset")
LOW_PRECISION = (torch.float16, torch.bfloat16)

Function = Callable[..., tuple[Tensor, ...]]


@dataclass(frozen=True, kw_only=True)
class Call(ABC):
    """Dtype, device and layout of one call; the same call always has the same numbers.

    `layout` applies to all inputs and upstream gradients. `grads` says which results get a gradient:
    all of them, one ("h only"; the others are then undefined), or all from a plain `sum()`, which expands one number
    ("expanded"). `bias_shift` is added to half of each bias and subtracted from the other half: 1e4 saturates every
    gate. `requires_grad` names the inputs that do; by default, those in `differentiable`.
    """

    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    layout: str = "contiguous"
    grads: str = "all"
    requires_grad: tuple[str, ...] | None = None
    bias_shift: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.requires_grad is None:
            object.__setattr__(self, "requires_grad", self.differentiable)

    @property
    @abstractmethod
    def differentiable(self) -> tuple[str, ...]:
        """The names of the arguments that have a gradient, in the order of the arguments."""

    @property
    @abstractmethod
    def results(self) -> dict[str, tuple[int, ...]]:
        """The names of the results, with their shapes."""

    @property
    @abstractmethod
    def longest_sum(self) -> int:
        """The number of terms of the longest sum in any result or gradient."""

    @abstractmethod
    def values(self) -> dict[str, Tensor]:
        """The arguments by name, in float64, contiguous, on the CPU."""

    @abstractmethod
    def reference(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Results and gradients in float64; for low precision, also the spread of sums (see `reference.spread`)."""

    def describe(self, sizes: str) -> str:
        """The sizes, and everything that is not the default."""
        parts = [sizes, str(self.dtype).removeprefix("torch."), self.device]
        parts += [self.layout] if self.layout != "contiguous" else []
        parts += [f"gradient of {self.grads}"] if self.grads not in ("all", "both") else []
        parts += [f"bias ±{self.bias_shift:g}"] if self.bias_shift else []
        return ", ".join([*parts, f"seed {self.seed}"])

    def inputs(self) -> dict[str, Tensor]:
        """The arguments in this call's layout; those in `requires_grad` are leaves that require gradients."""
        laid_out = {name: self._laid_out(value) for name, value in self.values().items()}
        return {name: t.requires_grad_() if name in self.requires_grad else t for name, t in laid_out.items()}

    def gradients(self) -> tuple[Tensor | None, ...]:
        """An upstream gradient for each result, in this call's layout; None for a result that gets none.

        Every fourth element is zero, as for a loss of some elements. What follows from it must be written, too.
        """
        if self.grads == "expanded":
            one = torch.ones((), dtype=self.dtype, device=self.device)
            return tuple(one.expand(shape) for shape in self.results.values())
        numbers = torch.Generator().manual_seed(self.seed + 1)
        drawn = {}
        for name, shape in self.results.items():
            value = torch.randn(shape, generator=numbers, dtype=torch.float64)
            value.view(-1)[1::4] = 0
            drawn[name] = self._laid_out(value)
        only = self.grads.removesuffix(" only") if self.grads.endswith(" only") else None
        return tuple(tensor if only in (None, name.removeprefix("new_")) else None for name, tensor in drawn.items())

    def _laid_out(self, value: Tensor) -> Tensor:
        """The same numbers in this call's layout; memory between and around them is NaN."""
        value = value.to(self.device, self.dtype)
        if self.layout == "contiguous":
            return value
        if self.layout == "transposed" and value.dim() >= 2:
            return value.transpose(0, 1).contiguous().transpose(0, 1)
        if self.layout == "offset":
            storage = value.new_full((value.numel() + 8,), math.nan)
            view = storage[3 : 3 + value.numel()].view(value.shape)
        else:  # sliced; also transposed for the one-dimensional bias
            view = value.new_full((*value.shape[:-1], 2 * value.shape[-1] + 1), math.nan)[..., 1::2]
        return view.copy_(value).detach()


@contextmanager
def nan_in_fresh_memory() -> Iterator[None]:
    """Fills the result of `empty()` with NaN, also in C++, so that an unwritten output cannot pass."""
    before = torch.get_deterministic_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*determinis.*")
        torch.set_deterministic_debug_mode("warn")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(before)


def outputs(function: Function, case: Call) -> dict[str, Tensor | None]:
    """Calls the function forward and backward: every result, and d_* of every input that needs a gradient.

    Raises AssertionError if the function has changed one of its arguments or an upstream gradient.
    """
    inputs, gradients = case.inputs(), case.gradients()
    upstream = {f"grad_{name.removeprefix('new_')}": grad for name, grad in zip(case.results, gradients, strict=True)}
    given = {**inputs, **upstream}
    before = {name: tensor.detach().clone() for name, tensor in given.items() if tensor is not None}
    with nan_in_fresh_memory():
        results = function(*inputs.values())
        got = {name: result.detach() for name, result in zip(case.results, results, strict=True)}
        got |= input_gradients(results, inputs, gradients)
    for name, old in before.items():
        assert torch.equal(given[name].nan_to_num(), old.nan_to_num()), f"{name} was changed by the call ({case})"
    return got


def input_gradients(
    results: tuple[Tensor, ...], inputs: dict[str, Tensor], gradients: tuple[Tensor | None, ...]
) -> dict[str, Tensor | None]:
    """The gradient of each input that requires one, as `d_*`; None for an input that autograd did not reach."""
    names = [name for name, tensor in inputs.items() if tensor.requires_grad]
    if not names:
        return {}
    pairs = [(result, grad) for result, grad in zip(results, gradients, strict=True) if grad is not None]
    heads, grads = zip(*pairs, strict=True)
    d = torch.autograd.grad(heads, [inputs[name] for name in names], grads, allow_unused=True)
    return {f"d_{name}": gradient for name, gradient in zip(names, d, strict=True)}


def expected(case: Call) -> dict[str, Tensor]:
    """The same results from the reference, in float64."""
    wanted, _ = case.reference()
    return wanted


def tolerance(case: Call, tf32: bool = False) -> float:
    """The allowed error, relative to |expected| + its root mean square: rounding, which grows with the longest sum.

    In half and bfloat16, sums are computed in float32, so only stored values are rounded. Their rounding is allowed
    relative to `reference.spread`, too.
    """
    if case.dtype in LOW_PRECISION:
        return 8 * torch.finfo(case.dtype).eps
    epsilon = 2.0**-11 if tf32 else torch.finfo(case.dtype).eps
    return epsilon * (64 + 4 * math.sqrt(case.longest_sum))


def difference(
    case: Call,
    got: dict[str, Tensor | None],
    tf32: bool = False,
    wanted: dict[str, Tensor] | None = None,
    spread: dict[str, Tensor] | None = None,
) -> str | None:
    """None if `got` agrees with the reference; otherwise a message that says what differs, where, and by how much.

    `wanted` and `spread` are the result of `case.reference()`, for callers that compare with it more than once.
    """
    if wanted is None or (spread is None and case.dtype in LOW_PRECISION):
        results, spread = case.reference()
        wanted = results if wanted is None else wanted
    spread = spread or {}
    for name, want in wanted.items():
        message = tensor_difference(name, got.get(name), want, case, tolerance(case, tf32), spread.get(name, 0.0))
        if message:
            return f"{message} ({case})"
    return None


def tensor_difference(
    name: str, got: Tensor | None, want: Tensor, case: Call, tolerance: float, spread: Tensor | float = 0.0
) -> str | None:
    """None if a tensor agrees with the reference, otherwise a message; NaN agrees with nothing."""
    if got is None:
        return f"{name} is missing: no gradient arrived"
    if got.shape != want.shape:
        return f"{name} has shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    if got.dtype != case.dtype:
        return f"{name} has dtype {got.dtype}, expected {case.dtype}"
    if got.device != want.device:
        return f"{name} is on {got.device}, expected {want.device}"
    if want.numel() == 0:
        return None
    error = (got.double() - want).abs()
    allowed = tolerance * (want.abs() + want.square().mean().sqrt() + spread)
    wrong = ~(error <= allowed)  # not `error > allowed`: that would let NaN pass
    if not wrong.any():
        return None
    at = [int(k) for k in wrong.nonzero()[0]]
    place = tuple(at)
    return (
        f"{name} is wrong at {at}: got {got[place].item():.6g}, expected {want[place].item():.6g}; "
        f"{int(wrong.sum())} of {wrong.numel()} elements are wrong"
    )


def fresh_seed() -> int:
    """A new seed for each check; a failure names it, so that the numbers can be repeated."""
    return torch.seed() % 10**6
