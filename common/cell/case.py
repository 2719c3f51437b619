"""One call of the cell: its inputs, its results, and how they differ from the reference."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from . import reference

INPUTS = ("input", "weights", "bias", "old_h", "old_cell")
LAYOUTS = ("contiguous", "transposed", "sliced", "offset")
LOW_PRECISION = (torch.float16, torch.bfloat16)
GRADS = ("both", "h only", "cell only", "expanded")

Cell = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Case:
    """Sizes, dtype, device and layout of one call; the same case always has the same numbers.

    `layout` applies to all inputs and upstream gradients. `grads` says which outputs get a gradient: both, only one
    (the other is then undefined), or both from a plain `sum()`, which expands one number to (B, S).
    `bias_shift` is added to half of the bias and subtracted from the other half: 1e4 saturates every gate.
    """

    B: int
    I: int
    S: int
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    layout: str = "contiguous"
    grads: str = "both"
    requires_grad: tuple[str, ...] = INPUTS
    bias_shift: float = 0.0
    seed: int = 0

    def __str__(self) -> str:
        parts = [f"B={self.B}, I={self.I}, S={self.S}", str(self.dtype).removeprefix("torch."), self.device]
        parts += [self.layout] if self.layout != "contiguous" else []
        parts += [f"gradient of {self.grads}"] if self.grads != "both" else []
        parts += [f"bias ±{self.bias_shift:g}"] if self.bias_shift else []
        return ", ".join([*parts, f"seed {self.seed}"])

    def inputs(self) -> dict[str, Tensor]:
        """The five arguments in this case's layout; those in `requires_grad` are leaves that require gradients."""
        B, I, S, bound = self.B, self.I, self.S, 1 / math.sqrt(self.S)
        numbers = torch.Generator().manual_seed(self.seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=numbers, dtype=torch.float64)

        def uniform(*shape: int) -> Tensor:
            return (2 * torch.rand(shape, generator=numbers, dtype=torch.float64) - 1) * bound

        bias = uniform(3 * S)
        bias += self.bias_shift * bias.sign()
        values = (normal(B, I), uniform(3 * S, S + I), bias, normal(B, S), normal(B, S))
        return {
            name: self._laid_out(value).requires_grad_(name in self.requires_grad)
            for name, value in zip(INPUTS, values, strict=True)
        }

    def gradients(self) -> tuple[Tensor | None, Tensor | None]:
        """`(grad_h, grad_cell)`, (B, S) each in this case's layout; None for an output that gets no gradient."""
        if self.grads == "expanded":
            one = torch.ones((), dtype=self.dtype, device=self.device)
            return one.expand(self.B, self.S), one.expand(self.B, self.S)
        numbers = torch.Generator().manual_seed(self.seed + 1)
        grad_h, grad_cell = (
            self._laid_out(torch.randn((self.B, self.S), generator=numbers, dtype=torch.float64)) for _ in "hc"
        )
        return (None if self.grads == "cell only" else grad_h, None if self.grads == "h only" else grad_cell)

    def _laid_out(self, value: Tensor) -> Tensor:
        """The same numbers in this case's layout; memory between and around them is NaN."""
        value = value.to(self.device, self.dtype)
        if self.layout == "contiguous":
            return value
        if self.layout == "transposed" and value.dim() == 2:
            return value.t().contiguous().t()
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


def outputs(lltm: Cell, case: Case) -> dict[str, Tensor | None]:
    """Calls the cell forward and backward: new_h, new_cell, and d_* of every input that needs a gradient.

    Raises AssertionError if the cell has changed one of its arguments or an upstream gradient.
    """
    inputs, gradients = case.inputs(), case.gradients()
    given = {**inputs, "grad_h": gradients[0], "grad_cell": gradients[1]}
    before = {name: tensor.detach().clone() for name, tensor in given.items() if tensor is not None}
    with nan_in_fresh_memory():
        new_h, new_cell = lltm(*inputs.values())
        got = {"new_h": new_h.detach(), "new_cell": new_cell.detach()}
        got |= input_gradients((new_h, new_cell), inputs, gradients)
    for name, old in before.items():
        assert torch.equal(given[name].nan_to_num(), old.nan_to_num()), f"{name} was changed by the call ({case})"
    return got


def input_gradients(
    results: tuple[Tensor, Tensor], inputs: dict[str, Tensor], gradients: tuple[Tensor | None, Tensor | None]
) -> dict[str, Tensor | None]:
    """The gradient of each input that requires one, as `d_*`; None for an input that autograd did not reach."""
    names = [name for name, tensor in inputs.items() if tensor.requires_grad]
    if not names:
        return {}
    pairs = [(result, grad) for result, grad in zip(results, gradients, strict=True) if grad is not None]
    heads, grads = zip(*pairs, strict=True)
    d = torch.autograd.grad(heads, [inputs[name] for name in names], grads, allow_unused=True)
    return {f"d_{name}": gradient for name, gradient in zip(names, d, strict=True)}


def expected(case: Case) -> dict[str, Tensor]:
    """The same results from the reference, in float64."""
    given = _given(case)
    new_h, new_cell = reference.forward(**{name: given[name] for name in INPUTS})
    gradients = reference.backward(**given)
    wanted = {f"d_{name}" for name in case.requires_grad}
    return {"new_h": new_h, "new_cell": new_cell} | {k: v for k, v in gradients.items() if k in wanted}


def _given(case: Case) -> dict[str, Tensor]:
    """The arguments of `reference.backward`."""
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    zero = torch.zeros_like(inputs["old_cell"])
    grad_h, grad_cell = (zero if grad is None else grad for grad in case.gradients())
    return {"grad_h": grad_h, "grad_cell": grad_cell, **inputs}


def tolerance(case: Case, tf32: bool = False) -> float:
    """The allowed error, relative to |expected| + its root mean square: rounding, which grows with the longest sum.

    In half and bfloat16, sums are computed in float32, so only stored values are rounded. Their rounding is allowed
    relative to `reference.spread`, too.
    """
    if case.dtype in LOW_PRECISION:
        return 8 * torch.finfo(case.dtype).eps
    epsilon = 2.0**-11 if tf32 else torch.finfo(case.dtype).eps
    return epsilon * (64 + 4 * math.sqrt(max(case.S + case.I, 3 * case.S, case.B)))


def difference(
    case: Case, got: dict[str, Tensor | None], tf32: bool = False, wanted: dict[str, Tensor] | None = None
) -> str | None:
    """None if `got` agrees with the reference; otherwise a message that says what differs, where, and by how much.

    `wanted` is the result of `expected(case)`, for callers that compare with it more than once.
    """
    spread = reference.spread(**_given(case)) if case.dtype in LOW_PRECISION else {}
    for name, want in (expected(case) if wanted is None else wanted).items():
        message = tensor_difference(name, got.get(name), want, case, tolerance(case, tf32), spread.get(name, 0.0))
        if message:
            return f"{message} ({case})"
    return None


def tensor_difference(
    name: str, got: Tensor | None, want: Tensor, case: Case, tolerance: float, spread: Tensor | float = 0.0
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
