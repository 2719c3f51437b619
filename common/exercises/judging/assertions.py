"""Assertions about any value: a `Failure` says what is wrong and what it looks like."""

from __future__ import annotations

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
    """Raises `Failure` when a tensor is not what it should be: where, by how much, and what it looks like.

    `case` says what was called: sizes, dtype. `suspects`: see `diagnosis.describe_difference`.
    """
    if isinstance(case, Case):
        dtype, tolerance_ = case.dtype, tolerance_ or tolerance(case)
    message = diagnosis.describe_difference(name, got, want, dtype, tolerance_, suspects)
    if message:
        first, *others = message.splitlines()
        raise Failure("\n".join([f"{first} ({case})" if str(case) else first, *others]))


def made_by(work: Work, function: str, module: str, name: str, *arguments: object) -> None:
    """Raises `Failure` unless what `module.name` returns was made by `function`, an `autograd.Function`."""
    node = work.beside(CALLS).node(module, name, *arguments)
    require(
        node == f"{function}Backward",
        f"the result of {name} was made by {node or 'no autograd node'}, expected {function}Backward: "
        f"call {function}.apply and return its result",
    )


def derived_by_hand(work: Work, module: str, name: str, *arguments: object) -> None:
    """Raises `Failure` when the backward of a function lets autograd find a gradient."""
    recorded = dict.fromkeys(work.beside(CALLS).recorded_in_backward(module, name, *arguments))
    require(
        not recorded,
        f"backward has autograd record {', '.join(recorded)}, to differentiate that: here the gradient is derived by "
        "hand, and backward computes it with tensor operations alone",
    )


def releases_gil(work: Work, name: str, *arguments: object) -> None:
    """Raises `Failure` when a function of the extension keeps other threads of Python from running.

    With these arguments it must take a tenth of a second or so.
    """
    require(
        work.beside(CALLS).releases_gil("_C", name, *arguments),
        f"while _C.{name} computes, no other thread of Python can run: it holds Python's lock, the GIL. "
        "py::call_guard<py::gil_scoped_release>() in m.def releases it",
    )


def unchanged(work: Work, file: str, why: str) -> None:
    """Raises `Failure`, which says why, unless a file of `files/` is as it was handed out, now and at the end."""
    work.relied_on[file] = why
    given = (work.exercise.folder / "files" / file).read_text(encoding="utf-8")
    require(work.text(file) == given, f"{file} has been changed. {why}")


def refused(function: Callable, *arguments: object, names: Sequence[str] = (), **keywords: object) -> str:
    """The message with which arguments are refused. Raises `Failure` when they are not, or `names` are not in it."""
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
    """A value in few words, for a message."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{value!r:.60}"
