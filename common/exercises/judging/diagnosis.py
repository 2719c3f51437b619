"""Describes where a tensor first differs from the expected one, and what kind of mistake that looks like."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch
from torch import Tensor

PLACES = 3  # how many wrong elements are shown
ROUGH = (
    1e-3  # how close a suspect must be, relative to the largest value: unlikely by chance, and coarser than float16
)


def describe_difference(
    name: str,
    got: object,
    want: Tensor,
    dtype: torch.dtype | None = None,
    tolerance: float | None = None,
    suspects: Mapping[str, Tensor] | None = None,
) -> str | None:
    """None if `got` agrees with `want`, of any shape and preferably in float64; otherwise a message for the learner.

    `dtype` is the one that `got` must have. `tolerance` is relative to |want| plus its root mean square; the default
    allows for rounding in that dtype. `suspects` are tensors that a wrong `got` might be, by their messages:
    `{"this is new_h of the previous call": old}`. NaN agrees only with NaN.
    """
    if got is None:
        return f"{name} is missing: got None, expected a tensor of shape {tuple(want.shape)}"
    if not isinstance(got, Tensor):
        return f"{name} is a {type(got).__name__} ({got!r:.60}), expected a tensor of shape {tuple(want.shape)}"
    if got.shape != want.shape:
        hint = ". Is it transposed?" if got.dim() == 2 and got.t().shape == want.shape else ""
        return f"{name} has shape {tuple(got.shape)}, expected {tuple(want.shape)}{hint}"
    if dtype is not None and got.dtype != dtype:
        return f"{name} has dtype {got.dtype}, expected {dtype}"
    dtype, got, want = got.dtype, got.detach().cpu(), want.detach().cpu()
    if not want.is_floating_point() or not got.is_floating_point():
        wrong = got != want
    else:
        wrong = ~_near(got, want, tolerance or _rounding(dtype, want))
    if not wrong.any():
        return None
    places = [tuple(int(k) for k in place) for place in wrong.nonzero()[:PLACES]]
    lines = [f"at {list(at)}: got {{}}, expected {{}}".format(*_both(got[at], want[at])) for at in places]
    lines = [f"{name} is wrong {lines[0]}", *(f"{' ' * len(name)}          {line}" for line in lines[1:])]
    lines.append(f"{int(wrong.sum())} of {wrong.numel()} elements are wrong")
    if kind := recognise_mistake(got.double(), want.double(), wrong, dtype, suspects or {}):
        lines.append(f"It looks like this: {kind}")
    return "\n".join(lines)


def recognise_mistake(
    got: Tensor, want: Tensor, wrong: Tensor, dtype: torch.dtype, suspects: Mapping[str, Tensor]
) -> str | None:
    """The kind of mistake, as a message; None if none fits. `got` and `want` are float64 tensors of one shape."""
    if got.isnan().any() and not want.isnan().any():
        return _nan(got, wrong)
    if not got.isfinite().all() or not want.isfinite().all():
        return None
    if dtype == torch.float64 and _near(got, want, 1e-6).all():
        return "right to 7 digits, so something is computed in float32: a literal such as 1.0f, or a float variable"
    some = want.abs().max() > 0
    for words, suspect in suspects.items():
        if suspect is not None and suspect.shape == want.shape and _is(got, suspect.detach().cpu().double()):
            return words
    if some and got.numel() > 1 and (got == got.flatten()[0]).all():
        return (
            "all zeros: nothing was computed"
            if not got.any()
            else f"the same number, {_shown(got.flatten()[0])}, everywhere"
        )
    if some and _is(got, want):
        return (
            f"right to {_digits(got, want)} digits: perhaps a constant is not exact, a formula is an approximation, "
            "or something is computed in a type with fewer digits"
        )
    if some and want.numel() > 2:
        factor = float((got * want).sum() / (want * want).sum())
        if abs(factor) > 1e-6 and _is(got, factor * want):
            return _factor(factor)
    for words, moved in _rearranged(want):
        if _is(got, moved):
            return words
    if part := _part(got, wrong):
        return part
    if want.numel() > 2 and (offset := (got - want).mean()).abs() > 0 and _is(got, want + offset):
        return (
            f"everywhere too large by {_shown(offset)}"
            if offset > 0
            else f"everywhere too small by {_shown(-offset)}"
        )
    return None


def _nan(got: Tensor, wrong: Tensor) -> str:
    nan, unwritten = got.isnan(), "they were never written (fresh memory is filled with NaN here)"
    if nan.all():
        return "all NaN: never written (fresh memory is filled with NaN here), or computed from a NaN everywhere"
    if torch.equal(nan, wrong) and (part := _part(got, wrong, "NaN")):
        return f"{part} Perhaps {unwritten}" if part.endswith("?") else f"{part}: perhaps {unwritten}"
    return f"{int(nan.sum())} of {nan.numel()} are NaN: {unwritten}, or they are 0/0, inf/inf or 0*inf"


def _digits(got: Tensor, want: Tensor) -> int:
    """To how many digits the tensors agree, relative to the largest expected number."""
    return int(-torch.log10((got - want).abs().max() / want.abs().max()))


def _factor(factor: float) -> str:
    if abs(factor + 1) < ROUGH:
        return "the sign is wrong"
    inverse = 1 / factor
    exact = f"{factor:.4g}" if abs(factor) >= 1 or abs(inverse - round(inverse)) > 0.01 else f"1/{round(inverse)}"
    return f"everything is {exact} times what it should be"


def _rearranged(want: Tensor):
    """Rearrangements of the right numbers, each with a message."""
    if want.dim() < 1 or want.numel() < 4:
        return
    if want.dim() == 2 and min(want.shape) > 1:
        rows, columns = want.shape
        words = "transposed: rows and columns are swapped, as if memory were read in the wrong order"
        yield words, want.t().reshape(rows, columns)
        yield words, want.reshape(columns, rows).t()
    for axis, name in ((-1, "column"), (0, "row")) if want.dim() == 2 else ((-1, "element"),):
        size = want.shape[axis]
        if size % 3 == 0 and size > 3:
            parts = want.chunk(3, dim=axis)
            for order in list(itertools.permutations(range(3)))[1:]:
                places = ", ".join(str(k) for k in order)
                text = f"the thirds are in the wrong order: {places} instead of 0, 1, 2. Are gates swapped?"
                yield text, torch.cat([parts[k] for k in order], dim=axis)
        if size > 3:
            yield f"shifted by one {name}", want.roll(1, axis)
            yield f"shifted by one {name}", want.roll(-1, axis)
            yield f"the {name}s are in reverse order", want.flip(axis)


def _part(got: Tensor, wrong: Tensor, how: str = "wrong") -> str | None:
    """Describes wrong elements that form whole rows or columns; None if they do not."""
    if wrong.dim() == 0 or wrong.all():
        return None
    names = ("column", "row") if wrong.dim() == 2 else ("element",)
    for axis, name in zip((-1, 0), names, strict=False):
        others = [k for k in range(wrong.dim()) if k != axis % wrong.dim()]
        lines = wrong.any(dim=others) if others else wrong
        size, first = len(lines), int(lines.int().argmax())
        if size < 3 or lines.all():
            continue
        if first > 0 and not lines[:first].any() and lines[first:].float().mean() > 0.9:
            zero = not got.movedim(axis, 0)[first:].any()
            what = "zero" if zero else how
            if first == size - 1:
                return f"only the last {name} is {what}"
            warp = ". Which threads compute those from 32 on?" if first == 32 else ""
            return f"only the first {first} {name}s are right, those from {first} on are {what}{warp}"
        if first == 0 and not lines[1:].any():
            return f"only the first {name} is {how}"
        last = size - 1 - int(lines.flip(0).int().argmax())
        if first < last < size - 1 and lines[first : last + 1].float().mean() > 0.9:
            which = f"the first {last + 1} {name}s" if first == 0 else f"{name}s {first} to {last}"
            return f"{which} are {how}, the others right"
        every = int(lines.sum())
        step = {int(k) for k in lines.nonzero().flatten().diff()}
        if every > 2 and len(step) == 1 and (stride := step.pop()) > 1:
            which = {2: "second", 3: "third"}.get(stride, f"{stride}th")
            return f"every {which} {name} is {how}, from {first} on"
    return None


def _is(got: Tensor, other: Tensor) -> bool:
    """Whether two tensors agree too closely for it to be chance."""
    return bool(((got - other).abs() <= ROUGH * (other.abs().max() + 1e-30)).all())


def _near(got: Tensor, want: Tensor, tolerance: float) -> Tensor:
    got, want = got.double(), want.double()
    finite = want[want.isfinite()]
    scale = finite.square().mean().sqrt() if finite.numel() else 0.0
    near = (got - want).abs() <= tolerance * (want.abs() + scale)
    return near | (got == want) | (got.isnan() & want.isnan())


def _rounding(dtype: torch.dtype, want: Tensor) -> float:
    return (torch.finfo(dtype).eps if dtype.is_floating_point else 0.0) * (64 + 4 * want.numel() ** 0.5)


def _both(got: Tensor, want: Tensor) -> tuple[str, str]:
    """Both numbers, with enough digits to show the difference."""
    for digits in (6, 9, 12, 17):
        shown = _shown(got, digits), _shown(want, digits)
        if shown[0] != shown[1]:
            break
    return shown


def _shown(number: Tensor, digits: int = 6) -> str:
    value = number.item()
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
