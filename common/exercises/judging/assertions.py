"""Assertions about any value: a `Failure` says what is wrong and what kind of mistake it looks like."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ...cell.case import Case, tolerance
from ..failures import Failure, require
from ..runner.process import LearnerError
from . import diagnosis
from .work import CALLS, Work


def same(
    name: str,
    got: object,
    want: Tensor,
    case: Case | str = "",
    dtype: torch.dtype | None = None,
    tolerance_: float | None = None,
    suspects: Mapping[str, Tensor] | None = None,
) -> None:
    """Raises `Failure` if a tensor is wrong: it says where, by how much, and what kind of mistake it looks like.

    `case` describes the call: sizes, dtype. `suspects`: see `diagnosis.describe_difference`.
    """
    if isinstance(case, Case):
        dtype, tolerance_ = case.dtype, tolerance_ or tolerance(case)
    message = diagnosis.describe_difference(name, got, want, dtype, tolerance_, suspects)
    if message:
        first, *others = message.splitlines()
        raise Failure("\n".join([f"{first} ({case})" if str(case) else first, *others]))


def digits_kept(candidate_cell: Tensor, z: float, advice: str) -> None:
    """Raises `Failure` with `advice` if elu of a small z, in float32, has lost digits, as exp(z) - 1 loses them."""
    error = (candidate_cell.double() / math.expm1(z) - 1).abs().max().item()
    require(
        error < 1e-3,
        f"the candidate cell is wrong by {error:.0%} at z = {z}, in float32: exp(z) - 1 loses the digits of a small "
        f"z; {advice}",
    )


def returned_numbers(value: object, count: int, call: str, kind: type | tuple[type, ...] = (int, float)) -> list:
    """The numbers that a call has returned. Raises `Failure` unless `value` is a tuple or list of so many numbers."""
    are_numbers = isinstance(value, tuple | list) and len(value) == count and all(isinstance(n, kind) for n in value)
    what = "whole numbers" if kind is int else "numbers"
    require(are_numbers, f"{call} returns {value!r:.60}, expected {count} {what}")
    return list(value)


def made_by(work: Work, function: str, module: str, name: str, *arguments: object) -> None:
    """Raises `Failure` unless the result of `module.name` comes from `function`, an `autograd.Function`."""
    node = work.beside(CALLS).node(module, name, *arguments)
    require(
        node == f"{function}Backward",
        f"the result of {name} was made by {node or 'no autograd node'}, expected {function}Backward: "
        f"call {function}.apply and return its result",
    )


def derived_by_hand(work: Work, module: str, name: str, *arguments: object) -> None:
    """Raises `Failure` if the backward of a function uses autograd to compute a gradient."""
    recorded = dict.fromkeys(work.beside(CALLS).recorded_in_backward(module, name, *arguments))
    require(
        not recorded,
        f"backward lets autograd record {', '.join(recorded)} and differentiate it: in this exercise, derive the "
        "gradient by hand and compute it with tensor operations alone",
    )


def releases_gil(work: Work, name: str, *arguments: object) -> None:
    """Raises `Failure` if a function of the extension blocks other Python threads while it runs.

    With these arguments, a call must take about a tenth of a second.
    """
    require(
        work.beside(CALLS).releases_gil("_C", name, *arguments),
        f"while _C.{name} computes, no other Python thread can run: it holds Python's global lock, the GIL. "
        "py::call_guard<py::gil_scoped_release>() in m.def releases it",
    )


def unchanged(work: Work, file: str, why: str) -> None:
    """Raises `Failure` with the reason `why` if a file of `files/` is changed, now or at the end of the check."""
    work.relied_on[file] = why
    given = (work.exercise.folder / "files" / file).read_text(encoding="utf-8")
    require(work.text(file) == given, f"{file} has been changed. {why}")


def refused(function: Callable, *arguments: object, names: Sequence[str] = (), **keywords: object) -> str:
    """The message that refuses a call. Raises `Failure` if the call is accepted or the message lacks all `names`."""
    given = ", ".join(describe_value(one) for one in [*arguments, *keywords.values()])
    try:
        function(*arguments, **keywords)
    except LearnerError as error:
        said = str(error).partition("\n")[0]
        if names and not any(name in said for name in names):
            raise Failure(f"{given} is refused, but the message {said!r} names none of {', '.join(names)}") from None
        return said
    raise Failure(f"not refused: {given}")


def describe_value(value: object) -> str:
    """A short description of a value, for a message."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{value!r:.60}"
