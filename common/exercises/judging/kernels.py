"""Assertions about launches that the emulator counted: which threads stored the results, and how they were launched.

All accept None, which is what `work.counting()` yields on a GPU.
"""

from __future__ import annotations

import math
import re

from ...emulator import Counted, Launch, matches_kernel
from ..failures import Failure, require
from .source_text import find_narrow_factors, find_narrow_products

WARP = 32  # threads
IDLE = {  # a part of a launch: which memory each must access, and the likely cause if one does not
    "warps": ("global memory", "Is the work shared among all of them?"),
    "blocks": ("memory", "Is there one block too many when the last one is full?"),
}
MOST_READS = 3  # times as many numbers as are enough: a kernel may read one again instead of keeping it


def stored_once(counted: Counted | None, size: int, case: object, kernel: str = "") -> None:
    """Raises `Failure` unless kernels stored results of `size` bytes, each element by one thread of a launch."""
    if counted is None:
        return
    launches = [launch for launch in counted.launches if matches_kernel(launch.kernel, kernel)]
    name = kernel or "a kernel"
    require(launches, f"{case}: {name} is never launched: the results must come from a kernel")
    stored = sum(launch.stored_bytes for launch in launches)
    names = " and ".join(launch.kernel for launch in launches)
    require(
        stored >= size,
        f"{case}: {names} stores {stored:,} of the {size:,} bytes of the results: the rest is computed on the "
        "host, or no thread stores it",
    )
    for launch in launches:
        if launch.repeated_stores:
            raise Failure(
                f"{case}: the results are right, but {launch.kernel} stores {launch.repeated_stores:,} times to "
                f"elements that another thread has already stored, first {launch.first_repeated}. "
                f"{_likely_cause(launch)}"
            )


def launched_once(counted: Counted | None, case: object) -> None:
    """Raises `Failure` if a kernel was launched more than once."""
    for launch in counted.launches if counted else ():
        require(
            launch.launches == 1,
            f"{case}: the results are right, but {launch.kernel} is launched {launch.launches:,} times where one "
            "launch is enough: each launch takes time, and a grid can have a block for every row",
        )


def enough_threads(counted: Counted | None, elements: int, case: object) -> None:
    """Raises `Failure` if a launch has fewer threads than results, or blocks that are smaller than a warp."""
    for launch in counted.launches if counted else ():
        in_block, blocks = math.prod(launch.block), math.prod(launch.grid)
        require(
            in_block >= WARP,
            f"{case}: the results are right, but {launch.kernel} is launched in blocks of {in_block} threads. The "
            f"threads of a block run in warps of {WARP}: the rest of each warp does nothing",
        )
        require(
            in_block * blocks >= elements,
            f"{case}: the results are right, but {launch.kernel} is launched with {in_block * blocks:,} threads for "
            f"{elements:,} results. Is there a block for every row?",
        )


def few_reads(counted: Counted | None, enough: int, case: object) -> None:
    """Raises `Failure` if kernels read more than `MOST_READS` times as many numbers as are enough."""
    if counted is None:
        return
    names = " and ".join(launch.kernel for launch in counted.launches)
    reads = counted.total("lanes", space="global load")
    require(
        reads <= MOST_READS * enough,
        f"{case}: the results are right, but the threads of {names} read {reads:,} numbers where {enough:,} are "
        "enough. Does each thread also compute what others store?",
    )


def no_idle(counted: Counted | None, case: object, part: str) -> None:
    """Raises `Failure` if some "blocks" of a launch accessed no memory, or some "warps" no global memory."""
    memory, cause = IDLE[part]
    for launch in counted.launches if counted else ():
        idle, which = getattr(launch, f"idle_{part}"), f"{launch.kernel}<<<{launch.grid}, {launch.block}>>>"
        require(
            not idle,
            f"{case}: the results are right, but {idle:,} {part} of {which} access no {memory}. {cause}",
        )


def on_current_stream(counted: Counted | None, case: object) -> None:
    """Raises `Failure` if a launch does not use torch's current stream."""
    for launch in counted.launches if counted else ():
        require(
            not launch.on_other_streams,
            f"{case}: {launch.kernel} is not launched on the current stream, so it does not wait for ATen's work "
            "there. The stream is the fourth argument between <<< and >>>",
        )


def guarded(counted: Counted | None, case: object) -> None:
    """Raises `Failure` if a launch was not protected by a device guard."""
    for launch in counted.launches if counted else ():
        require(
            not launch.unguarded,
            f"{case}: {launch.kernel} is launched without a device guard: with tensors on a second GPU it would run "
            "on the first. Is there a CUDAGuard in the host code?",
        )


def wide_indices(code: str, kernel: str, *factors: str) -> None:
    """Raises `Failure` if a kernel computes an index in 32 bits.

    `code` is its source without comments, and `factors` are names such as "row" whose products exceed 32 bits.
    """
    large = "exceeds 2**31 for a large tensor"
    advice = "use int64_t, as in 3/index_of_64_bits"
    narrow = find_narrow_products(code, *factors)
    require(
        not narrow,
        f"the results are right, but {' and '.join(narrow)} has 32 bits, and holds a product that {large}: {advice}",
    )
    for names in find_narrow_factors(code, kernel):
        raise Failure(
            f"the results are right, but {names} have 32 bits, and so has their product, which {large}, even if it "
            f"is stored in 64 bits: {advice}"
        )


def _likely_cause(launch: Launch) -> str:
    blocks = re.findall(r"block (\(.*?\))", launch.first_repeated)
    rows = {block.split(", ", 1)[1] for block in blocks}  # of blocks that differ in x at most
    if len(rows) == 1:
        return "Threads beyond the last element must store nothing: is there a guard?"
    return "Does each block also compute the rows of others? The step from one of its rows to the next is gridDim.y"
