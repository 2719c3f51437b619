"""For checks of functions that keep something between their calls, or destroy what a second backward needs.

from common.exercises.judging.repeats import backward_twice, call_in_between, nothing_kept, results_kept
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from ...cell.case import Case, expected, tolerance
from ..failures import Failure, require
from ..runner.process import LearnerError
from ..runner.remote import RemoteFunction
from .assertions import same
from .work import CALLS, SMALL, Work

GRADIENTS = ("d_input", "d_weights", "d_bias", "d_old_h", "d_old_cell")


def backward_twice(work: Work, cell: RemoteFunction) -> None:
    """Raises `Failure` if backward destroys what forward saved: its results, or what a second backward needs."""
    case = work.case(*SMALL, dtype=torch.float64)
    inputs = list(case.inputs().values())
    results = cell(*inputs)
    words = "backward changes a tensor that forward saved, or a result that the caller has"
    torch.autograd.grad(results, inputs, case.gradients(), retain_graph=True)
    try:
        found = torch.autograd.grad(results, inputs, case.gradients())
    except LearnerError as error:
        raise Failure(f"{words}: a second backward with retain_graph=True fails\n{error}") from None
    want = expected(case)
    for name, gradient in zip(GRADIENTS, found, strict=True):
        try:
            same(name, gradient, want[name], f"{case}, the second backward with retain_graph=True")
        except Failure as failure:
            raise Failure(f"{words}\n{failure}") from None


def call_in_between(work: Work, cell: RemoteFunction) -> None:
    """Raises `Failure` if a call changes what an earlier call keeps for its backward."""
    case = work.case(*SMALL, dtype=torch.float64)
    inputs = list(case.inputs().values())
    results = cell(*inputs)
    cell(*replace(case, seed=case.seed + 1).inputs().values())
    want = expected(case)
    found = torch.autograd.grad(results, inputs, case.gradients())
    for name, gradient in zip(GRADIENTS, found, strict=True):
        try:
            same(name, gradient, want[name], f"{case}, with another call of the cell before this backward")
        except Failure as failure:
            raise Failure(f"A call overwrites what an earlier call keeps for its backward\n{failure}") from None


def results_kept(
    work: Work, function: str, names: Sequence[str], first: Sequence[object], second: Sequence[object]
) -> None:
    """Raises `Failure` if a call of a function overwrites results of an earlier one, which the caller still has.

    `function` is its dotted name, such as "_C.forward" or "torch.ops.unit.step"; `first` and `second` are the
    arguments of two calls with the same sizes. `names` are those of the tensors that it returns, and then of the
    gradients of the arguments that require them: they come from a backward after each call.
    """
    module, _, name = function.rpartition(".")
    changed = [names[k] for k in work.beside(CALLS).overwritten(module, name, list(first), list(second))]
    has_backward = any(isinstance(one, torch.Tensor) and one.requires_grad for one in first)
    after = f"a second call of {name}" + (" and its backward" if has_backward else "")
    require(
        not changed,
        f"{after} overwrites {', '.join(changed)} of the first, which the caller still has: both calls write to the "
        "same memory. Allocate every result in every call, not in a static variable",
    )


def nothing_kept(work: Work, function: str, case: Case, names: Sequence[str] = ("new_h", "new_cell")) -> None:
    """Raises `Failure` if a function of the cell's arguments keeps something of them that may change in place.

    `function` is its dotted name, such as "_C.forward". `names` are those of the results to compare, in order.
    """
    module, _, name = function.rpartition(".")
    later = replace(case, seed=case.seed + 1)
    first, second = (list(one.inputs().values()) for one in (case, later))
    found = work.beside(CALLS).after_change(module, name, first, second)
    want, about = (
        expected(later),
        "after the arguments of an earlier call were changed in place, as an optimizer does",
    )
    for result, got in zip(names, found, strict=False):
        same(result, got, want[result], f"{case}, {about}", case.dtype, tolerance(case))
