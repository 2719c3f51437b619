"""The test harness for stages: everything a stage must pass, on every device and dtype that it supports.

`check_stage(2)` runs it for a stage and returns a row per check. Most checks are cases: calls that must agree with
the reference. The others are functions of a `Subject` that raise AssertionError with a message for the learner. What
a stage offers decides which: see cell.py and sequence.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import torch

from .. import stages
from ..build import targets
from ..cell.call import fresh_seed
from ..errors import UserError
from . import cell, sequence
from .subject import Result, Subject, check_subject

# From a stage's number, target, device, dtype and seed to the subjects of its checks.
KINDS: dict[str, Callable[[int, str, str, torch.dtype, int], list[Subject]]] = {
    "cell": lambda *arguments: [cell.make_subject(*arguments)],
    "sequence": sequence.make_subjects,
}


def make_subjects(number: int, target: str | None = None, seed: int | None = None) -> list[Subject]:
    """Every device and dtype of a stage on a target, by default the best that this machine has.

    They share one seed: the given one, or a new one.
    """
    stage = stages.get_stage(number)
    if stage.kind not in KINDS:
        raise UserError(f"stage {number} is a {stage.kind}; there is nothing for this harness to check")
    target = targets.choose_target(stage, target)
    seed = fresh_seed() if seed is None else seed
    dtypes = [getattr(torch, name) for name in stage.dtypes]
    return [
        subject
        for device in targets.devices_of(stage, target)
        for dtype in dtypes
        for subject in KINDS[stage.kind](number, target, device, dtype, seed)
    ]


def check_stage(number: int, target: str | None = None) -> list[Result]:
    """Runs every check on every subject of a stage; returns one row for each."""
    return [result for one in make_subjects(number, target) for result in check_subject(one)]


def check_nth(number: int, target: str, seed: int, n: int) -> list[Result]:
    """Runs every check on one of the stage's subjects, in the order of `make_subjects`; returns a row for each."""
    return check_subject(make_subjects(number, target, seed)[n])


@contextmanager
def two_processes() -> Iterator[Executor]:
    """Runs checks in two processes at a time. They start with torch already imported.

    Not more: torch's operations use several threads themselves.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(2, mp_context=context) as workers:
        yield workers
