"""Comparisons of a learner's cell with the reference: outputs, gradients and second derivatives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from ...cell import reference
from ...cell.case import Case, expected, input_gradients, tolerance
from ..failures import Failure, require
from ..runner.remote import RemoteFunction
from . import diagnosis
from .assertions import describe_value, same
from .second_derivatives import right_or_refused
from .work import SMALL, Work

SIZES = (SMALL, (1, 4, 33), (5, 3, 1), (2, 1, 300))


def cases(work: Work, sizes: Iterable[tuple[int, int, int]] = SIZES) -> list[Case]:
    """Calls of the cell that cover typical mistakes: sizes, both dtypes, layouts, gradients, extreme values."""
    found = [work.case(*size, dtype=dtype) for size in sizes for dtype in (torch.float32, torch.float64)]
    found += [work.case(*SMALL, dtype=torch.float64, layout=layout) for layout in ("transposed", "sliced", "offset")]
    found += [work.case(*SMALL, dtype=torch.float64, grads=grads) for grads in ("h only", "cell only", "expanded")]
    found.append(work.case(*SMALL, bias_shift=1e4))
    # Each call has different numbers, so that a result kept from an earlier call is wrong.
    return [replace(case, seed=case.seed + 10 * k) for k, case in enumerate(found)]


def agree(cell: Callable[..., tuple[Tensor, Tensor]], these: Iterable[Case], gradients: bool = True) -> None:
    """Raises `Failure`, with the likely mistake, if outputs or gradients of a case differ from the reference."""
    before: dict[str, Tensor] = {}
    for case in these:
        inputs, grads = case.inputs(), case.gradients()
        results = cell(*inputs.values())
        if not (isinstance(results, tuple | list) and len(results) == 2):
            raise Failure(f"the cell returns {describe_value(results)}, expected the pair (new_h, new_cell)")
        got, want = dict(zip(("new_h", "new_cell"), results, strict=True)), expected(case)
        _compare_all(case, got, {name: want[name] for name in got}, before)
        if gradients:
            for name, result, grad in zip(("new_h", "new_cell"), results, grads, strict=True):
                if grad is not None and not result.requires_grad:
                    raise Failure(f"{name} has no gradient: autograd does not know how it was computed ({case})")
            got |= input_gradients(results, inputs, grads)
            _compare_all(case, got, {name: want[name] for name in GRADIENTS if name in want}, before)
        before = {name: tensor for name, tensor in got.items() if tensor is not None}


def nan_shows(work: Work) -> None:
    """Raises `Failure` if new_h does not show a NaN in z, which is where a user would look for it."""
    case = work.case(*SMALL)
    for gate, name in enumerate(("input gate", "output gate", "candidate cell")):
        inputs = case.inputs()
        inputs["bias"].data[gate * case.S] = torch.nan
        new_h, _ = work.cell()(*inputs.values())
        require(
            bool(new_h[:, 0].isnan().all()),
            f"z is NaN for the {name} of the first unit, but new_h is not: something hides it, such as fmax or fmin, "
            f"which return the other argument ({case})",
        )


def large_cells(work: Work) -> None:
    """Raises `Failure` if tanh of a large cell, which is 1 or -1, is not finite."""
    case = work.case(*SMALL)
    for cell in (-1000, 1000):
        inputs = case.inputs()
        inputs["old_cell"].data.fill_(cell)
        new_h, _ = work.cell()(*inputs.values())
        require(
            bool(new_h.isfinite().all()),
            f"new_h is not finite where old_cell is {cell} ({case}): an exponential overflows, use std::tanh",
        )


ELEMENTS = r"^It looks like this: .*\belements?\b"
# The most informative gradient comes first: the others are computed from the same values.
GRADIENTS = ("d_old_cell", "d_bias", "d_weights", "d_old_h", "d_input")


def _compare_all(
    case: Case, got: Mapping[str, object], want: Mapping[str, Tensor], before: Mapping[str, Tensor]
) -> None:
    """Raises `Failure` for the first tensor of `want` that differs, and lists the others."""
    wrong = [
        name for name in want if diagnosis.describe_difference("", got[name], want[name], case.dtype, tolerance(case))
    ]
    if not wrong:
        return
    name, others = wrong[0], wrong[1:]
    try:
        same(name, got[name], want[name], case, suspects=find_suspects(case, name, before))
    except Failure as failure:
        lines = [str(failure)]
        if (
            name == "d_bias"
            and case.S > 1
            and (gates := _describe_wrong_gates(got[name], want[name], tolerance(case)))
        ):
            # The names of the wrong gates say more than the positions of the wrong elements.
            lines = [line for said in lines for line in said.splitlines() if not re.search(ELEMENTS, line)] + gates
        right = [one for one in want if one not in wrong]
        lines += [f"Also wrong: {', '.join(others)}"] if others else []
        lines += [f"Right: {', '.join(right)}"] if right else []
        raise Failure("\n".join(lines)) from None


def _describe_wrong_gates(got: object, want: Tensor, tolerance: float) -> list[str]:
    """Names the gates whose gradients in d_bias (the sum of d_z over the batch) are wrong."""
    if not isinstance(got, Tensor) or got.shape != want.shape:
        return []
    gates = ("input gate", "output gate", "candidate cell")
    parts = zip(gates, got.detach().chunk(3), want.chunk(3), strict=True)
    wrong = [gate for gate, g, w in parts if diagnosis.describe_difference("", g, w, None, tolerance)]
    return [f"d_bias is wrong for the {' and the '.join(wrong)}, right for the others"] if len(wrong) < 3 else []


def find_suspects(case: Case, name: str, before: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that a wrong output or gradient of the cell might be, by the message for each."""
    inputs = {other: tensor.detach() for other, tensor in case.inputs().items()}
    zeros = torch.zeros(case.B, case.S, device=case.device)
    grad_h, grad_cell = (zeros if grad is None else grad for grad in case.gradients())
    found = {f"this is {other}, an argument, returned unchanged": tensor for other, tensor in inputs.items()}
    found |= {"this is grad_h, unchanged": grad_h, "this is grad_cell, unchanged": grad_cell}
    found |= {f"this should be {other}": tensor for other, tensor in expected(case).items() if other != name}
    if name in before:
        found["this is the result of the previous call: a buffer that was not overwritten"] = before[name]
    for words, order in (
        ("the input gate and the output gate are swapped", (1, 0, 2)),
        ("the input gate and the candidate cell are swapped", (2, 1, 0)),
        ("the output gate and the candidate cell are swapped", (0, 2, 1)),
    ):
        swapped = inputs | {key: torch.cat([inputs[key].chunk(3)[k] for k in order]) for key in ("weights", "bias")}
        found[words] = dict(zip(("new_h", "new_cell"), reference.forward(**swapped), strict=True)).get(name)
    turns = torch.arange(3 * case.S, device=case.device).view(case.S, 3).t().flatten()
    in_turns = inputs | {key: inputs[key][turns] for key in ("weights", "bias")}
    words = "the gates take z's columns in turns, but each gate has a third of the columns, side by side"
    found[words] = dict(zip(("new_h", "new_cell"), reference.forward(**in_turns), strict=True)).get(name)
    if name.startswith("d_"):
        for words, given in (
            ("grad_cell is not used, but new_cell is an output, too", (grad_h, torch.zeros_like(grad_cell))),
            (
                "grad_h is not used, but new_cell gets a gradient through new_h, too",
                (torch.zeros_like(grad_h), grad_cell),
            ),
        ):
            found[words] = reference.backward(*given, **inputs)[name]
    if name in ("d_old_h", "d_input"):
        gradients = reference.backward(grad_h, grad_cell, **inputs)
        d_X = torch.cat([gradients["d_old_h"], gradients["d_input"]], dim=1)
        words = "these are the wrong columns of d_X: X holds old_h first, then input"
        found[words] = d_X[:, -case.S :] if name == "d_old_h" else d_X[:, : case.I]
    return {words: tensor for words, tensor in found.items() if tensor is not None}


def no_silent_second_derivatives(work: Work, cell: RemoteFunction, hint: str) -> None:
    """Raises `Failure` if a second derivative of the cell is neither right nor refused; `hint` says what to do."""
    inputs = work.case(2, 3, 4, dtype=torch.float64).inputs()
    right_or_refused(cell, reference.forward, inputs, hint)
