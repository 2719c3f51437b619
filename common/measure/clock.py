"""How long a call takes: on CPU tensors by the host's clock, on CUDA tensors by CUDA events."""

from __future__ import annotations

import gc
import logging
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import torch

# The timer's package looks for CUDA when it is imported, and would print a warning on a machine without a GPU.
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
from torch.utils.benchmark import Timer  # noqa: E402

Call = Callable[[], object]

# Clocks and threads need tenths of a second to settle: on an H200, eager's first 30 ms of backward were 40 % slower.
WARM_UP_ROUNDS = 10
LARGEST_KEPT = 31 << 20  # bytes: of 32 MiB or more, glibc always returns the memory to the system


@dataclass
class Samples:
    """The samples of one implementation in microseconds: one list for each round, so that rounds can be paired."""

    rounds: list[list[float]] = field(default_factory=list)

    @property
    def flat(self) -> list[float]:
        """All samples, in the order in which they were taken."""
        return [sample for block in self.rounds for sample in block]

    def quartiles(self) -> tuple[float, float, float]:
        """The first quartile, the median and the third quartile, in microseconds."""
        flat = self.flat
        if len(flat) == 1:
            return flat[0], flat[0], flat[0]
        q1, median, q3 = statistics.quantiles(flat, n=4, method="inclusive")
        return q1, median, q3

    def ratio_to(self, other: Samples) -> float:
        """The median over rounds of this implementation's time over the other's in the same round.

        A disturbance that slows a whole round down affects both times and cancels.
        """
        pairs = zip(self.rounds, other.rounds, strict=True)
        return statistics.median(statistics.median(mine) / statistics.median(theirs) for mine, theirs in pairs)


def sample_host(call: Call, calls: int) -> list[float]:
    """One sample in microseconds: the mean of `calls` calls in a row on CPU tensors."""
    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    return [timer.timeit(calls).mean * 1e6]


def sample_cuda(call: Call, calls: int) -> list[float]:
    """A sample in microseconds for each of `calls` calls on CUDA tensors.

    The GPU is idle when a call begins. So the sample of a small cell includes the time for Python and the launches,
    for which a program has to wait, too.
    """
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for _ in range(calls):
        torch.cuda.synchronize()
        start.record()
        call()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1e3)
    return samples


def estimate_seconds(call: Call, device: str) -> float:
    """A rough estimate of the seconds that one call takes: the shortest of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def interleave(
    calls: Sequence[Call],
    device: str,
    rounds: int,
    block_seconds: float,
    warm_up_rounds: int = WARM_UP_ROUNDS,
) -> list[Samples]:
    """The samples of each implementation, taken in rounds (A B C, C A B, ...) so that drift affects all equally.

    In a round each implementation makes the same number of calls, as many as fill `block_seconds` for the first of
    `calls`; one more call before them, not timed, loads its code and data into the caches again. The order differs
    from round to round: on an H200 an implementation that always came after eager took 5 to 10 % longer for
    a small backward.
    """
    block = sample_cuda if device == "cuda" else sample_host
    keep_freed_memory()
    repeats = min(1000, max(1, round(block_seconds / estimate_seconds(calls[0], device))))
    samples = [Samples() for _ in calls]
    order, dice = list(zip(calls, samples, strict=True)), random.Random(0)
    with no_collection(), one_core(device):
        for k in range(-warm_up_rounds, rounds):
            dice.shuffle(order)
            for call, taken in order:
                call()
                sample = block(call, repeats)
                if k >= 0:
                    taken.rounds.append(sample)
    return samples


def keep_freed_memory() -> None:
    """Lets malloc reuse the memory of freed tensors of up to 32 MiB, as in a process that has freed a large one.

    Until then, glibc returns memory of more than 128 KiB to the system, and the next call has to fault its pages in
    again: the same forward pass of `torch.nn.LSTM` took 3.1 ms before, and 2.4 ms after (T128 B16 S128, two cores).
    """
    torch.empty(LARGEST_KEPT, dtype=torch.uint8)


@contextmanager
def no_collection() -> Iterator[None]:
    """Without Python's garbage collection, which might run in the middle of a sample."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def one_core(device: str) -> Iterator[None]:
    """Keeps all threads of this process on one core while CUDA tensors are measured (on Linux).

    Autograd runs backward in a thread of its own. To wake a thread on another core takes a time that depends on
    which core, and on how deeply it sleeps; on the same core, it takes a few microseconds.
    """
    if device != "cuda" or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    keep_threads_on({max(before)})
    try:
        yield
    finally:
        keep_threads_on(before)


def keep_threads_on(cores: set[int]) -> None:
    """Lets each thread of this process run on these cores only. New threads inherit them."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread.name), cores)
