"""For checks of kernels and launches: which threads store the results, and whether launch errors are reported.

from common.exercises.judging.launches import count_differences, error_reported, large_batch, whole_warps
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

import torch

from ...cell.case import Case
from ...emulator import Counted
from ..failures import Failure, require
from ..runner.process import LearnerError
from .cell import agree
from .work import Work

ROWS = 65537  # more than the 65535 blocks that a grid may have in y
ORDERS = ("1", "2", "3")  # seeds: in which order the emulator runs the threads


def large_batch(work: Work, compare: Callable[[Case], None] | None = None) -> None:
    """Raises `Failure` unless `compare` passes for more rows than a grid has blocks in y.

    By default, it compares the cell and its gradients with the reference.
    """
    case = work.case(ROWS, 1, 1)
    try:
        compare(case) if compare else agree(work.cell(), [case])
    except Failure as failure:
        raise Failure(
            f"{failure}\nA grid has at most 65535 blocks in y: which threads compute the rows beyond that?"
        ) from None


def whole_warps(work: Work, kernel: str) -> None:
    """Raises `Failure` if few threads of a warp store at the same time, for example if each computes a whole row."""
    case = work.case(2, 3, 256)
    inputs = list(case.inputs().values())
    with work.counting() as counted:
        torch.autograd.grad(work.cell()(*inputs), inputs, case.gradients())
    if counted.kernels is None:
        return  # on a GPU
    requests, stored = (counted.kernels.total(what, kernel, "global store") for what in ("requests", "lanes"))
    require(
        2 * stored > 32 * requests,
        f"the results are right, but when {kernel} stores, only {stored / max(1, requests):.3g} of the 32 threads of "
        "a warp are active. Does each thread compute a unit of its own?",
    )


def error_reported(work: Work, name: str, *arguments: object) -> None:
    """Raises `Failure` when `_C.name` returns although the device rejected its launch; checks nothing on a GPU."""
    if work.target != "emulator":
        return
    # The device rejects every block, and the emulator does not check launches itself: the learner's code must.
    work.restart(EMULATOR_DEVICE="maxThreadsPerBlock=1", EMULATOR_CHECKS="-launch")
    try:
        getattr(work.load("_C"), name)(*arguments)
    except LearnerError as error:
        if "the emulator found" in str(error):
            raise
    else:
        raise Failure(
            f"on a device that rejects every launch, {name} returns without an error: does the code check for errors "
            "after the launch?"
        )
    finally:
        work.restart()


@contextlib.contextmanager
def tensors_on_device_1(work: Work) -> Iterator[None]:
    """From here on, tensors are on device 1 and device 0 is current; raises `Failure` for a launch on device 0.

    The learner's functions have to be loaded again.
    """
    work.restart(EMULATOR_DEVICES="2", EMULATOR_TENSOR_DEVICE="1")
    try:
        yield
    except LearnerError as error:
        if "memory of device 1" not in str(error):
            raise
        raise Failure(
            f"{str(error).strip()}\nDevice 0 is current, and the tensors are on device 1, but the kernel is launched "
            "without a device guard for the device of the tensors"
        ) from None


def a_block_for_each_row(counted: Counted | None, case: Case, cause: str) -> None:
    """Raises `Failure` unless each launch has a block in y for every row of the batch; accepts None, as on a GPU."""
    for launch in counted.launches if counted else ():
        require(
            launch.grid[1] == case.B,
            f"{case}: the results are right, but {launch.kernel} is launched with {launch.grid[1]} blocks in y for "
            f"{case.B} rows. {cause}",
        )


def places_in(work: Work, file: str, function: str, *texts: str) -> list[int]:
    """Where each text first occurs in a function of a source; -1 where it does not."""
    body = re.search(rf"\b{function}\(.*?^}}", work.code(file), re.DOTALL | re.MULTILINE)
    return [body[0].find(text) if body else -1 for text in texts]


def checks_before_guard(work: Work, file: str, function: str) -> None:
    """Raises `Failure` if a host function creates its device guard before it calls check_arguments."""
    checks, guard = places_in(work, file, function, "check_arguments(", "Guard")
    require(
        not 0 <= guard < checks,
        "the device guard is created before check_arguments is called: for tensors that are not on a CUDA device, "
        "the user would see the guard's error, which does not name the argument",
    )


def stream_under_guard(work: Work, file: str, function: str) -> None:
    """Raises `Failure` if a host function asks for the current stream before it creates its device guard."""
    guard, stream = places_in(work, file, function, "Guard", "getCurrentCUDAStream()")
    require(
        not 0 <= stream < guard,
        f"{function} asks for the current stream before it creates the device guard: this is the stream of another "
        "device if the tensors are not on the current one. Create the guard first",
    )


def count_differences(work: Work, compute: Callable[[], dict[str, torch.Tensor]]) -> dict[str, int]:
    """For each result of `compute`, how many numbers change when the same threads run in other orders.

    A sum whose terms are added in a fixed order has the same bits in every run, so a right answer has only zeros.
    """
    found = []
    for order in ORDERS:
        work.restart(EMULATOR_SEED=order)
        found.append(compute())
    return {name: sum(int((one[name] != first).sum()) for one in found[1:]) for name, first in found[0].items()}
