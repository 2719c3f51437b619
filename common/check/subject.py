"""What the harness checks: a function of a stage, on one device, in one dtype; and the outcome of a check."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from ..cell.call import Call, Function, difference, outputs

Check = Callable[["Subject"], None]  # raises AssertionError with a message for the learner


@dataclass(frozen=True)
class Subject(ABC):
    """The subject of a check. A subclass knows the stage's functions, their cases, and the checks they must pass."""

    stage: int
    target: str
    device: str
    dtype: torch.dtype

    @property
    def label(self) -> str:
        """What is checked, for a line of output."""
        return str(self.dtype).removeprefix("torch.")

    @abstractmethod
    def function(self, case: Call) -> Function:
        """The stage's function that a case calls, with a flat tuple of results."""

    @abstractmethod
    def equations(self, case: Call) -> Function:
        """The same function in plain torch operations, differentiated by autograd."""

    @abstractmethod
    def small_case(self, **changes: object) -> Call:
        """A small case of this subject's device and dtype."""

    @abstractmethod
    def tiny_cases(self) -> list[Call]:
        """Cases in float64 that are small enough for finite differences."""

    @abstractmethod
    def cases(self) -> dict[str, Sequence[Call]]:
        """The calls whose results and gradients must agree with the reference, by the name of what they test."""

    @abstractmethod
    def checks(self) -> Sequence[Check]:
        """The other checks."""

    def agree(self, case: Call) -> None:
        """Raises AssertionError if results or gradients differ from the reference."""
        message = difference(case, outputs(self.function(case), case))
        assert message is None, message


@dataclass(frozen=True)
class Result:
    """One row of a check: `outcome` is "passed", "failed" or "not run"; `message` says why when not passed."""

    stage: int
    target: str
    device: str
    dtype: str
    name: str
    outcome: str
    message: str
    seconds: float


def check_subject(subject: Subject) -> list[Result]:
    """Runs every check on one subject; returns one row for each."""

    def agree(group: Sequence[Call]) -> Callable[[], None]:
        return lambda: [subject.agree(case) for case in group]

    rows = [_row(subject, name, agree(group)) for name, group in subject.cases().items()]
    for one in subject.checks():
        name = one.__name__.replace("_", " ")
        rows.append(_row(subject, name, partial(one, subject), cannot_run(one, subject)))
    return rows


def cannot_run(check: Check, subject: Subject) -> str | None:
    """Why a check cannot run on this machine or target; None if it can. `check.needs` names what it needs."""
    needs = getattr(check, "needs", "")
    on_gpu = subject.device.startswith("cuda")
    if needs == "streams" and not on_gpu:
        return "only CUDA tensors use streams"
    if needs == "two GPUs" and not (on_gpu and torch.cuda.device_count() > 1):
        return "needs CUDA tensors and two GPUs"
    return None


def needs(what: str) -> Callable[[Check], Check]:
    """Marks a check with what it needs: "streams" or "two GPUs"."""

    def mark(check: Check) -> Check:
        check.needs = what
        return check

    return mark


def _row(subject: Subject, name: str, run: Callable[[], None], reason: str | None = None) -> Result:
    """Runs one check; with a `reason` not to run it, returns a row with that reason."""
    outcome, message, start = "passed", "", time.perf_counter()
    if reason:
        outcome, message = "not run", reason
    else:
        try:
            run()
        except AssertionError as error:
            outcome, message = "failed", str(error)
        except Exception as error:  # any exception counts as a failure of the stage
            outcome, message = "failed", f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    return Result(subject.stage, subject.target, subject.device, subject.label, name, outcome, message, seconds)
