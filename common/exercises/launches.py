"""For checks of kernels and of their launches: which threads store the results, and whether errors are reported.

from common.exercises.launches import error_reported, large_batch, whole_warps
"""

from __future__ import annotations

import torch

from .failures import Failure, require
from .judging.cell import agree
from .judging.work import Work
from .runner.process import LearnerError

ROWS = 65537  # more than a grid may have blocks in y


def large_batch(work: Work, gradients: bool = True) -> None:
    """Raises `Failure` unless the cell (and its gradients) are right for more rows than a grid has blocks in y."""
    try:
        agree(work.cell(), [work.case(ROWS, 1, 1)], gradients=gradients)
    except Failure as failure:
        raise Failure(
            f"{failure}\nA grid has at most 65535 blocks in y: who computes the rows that come after?"
        ) from None


def whole_warps(work: Work, kernel: str) -> None:
    """Raises `Failure` when few threads of a warp store at the same time, as where one thread has a whole row."""
    case = work.case(2, 3, 256)
    inputs = list(case.inputs().values())
    with work.counting() as counted:
        torch.autograd.grad(work.cell()(*inputs), inputs, case.gradients())
    if counted.kernels is None:
        return  # on a GPU
    requests, stored = (counted.kernels.total(what, kernel, "global store") for what in ("requests", "lanes"))
    require(
        2 * stored > 32 * requests,
        f"right, but when {kernel} stores, {stored / max(1, requests):.3g} of the 32 threads of a warp do, and the "
        "others wait. Does each thread have a unit of its own?",
    )


def error_reported(work: Work, name: str, *arguments: object) -> None:
    """Raises `Failure` when `_C.name` returns although the device has rejected its launch. Emulator only."""
    # A device that has no room for any block, on an emulator that leaves it to the learner to ask for errors.
    work.restart(EMULATOR_DEVICE="maxThreadsPerBlock=1", EMULATOR_CHECKS="-launch")
    try:
        getattr(work.load("_C"), name)(*arguments)
    except LearnerError as error:
        if "the emulator found" in str(error):
            raise
    else:
        raise Failure(
            f"on a device that rejects every launch, {name} returns without an error: does the code check for one "
            "after the launch?"
        )
    finally:
        work.restart()
