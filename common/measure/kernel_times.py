"""Times the pointwise part alone on a GPU: how long its kernels run, and how close they come to the speed of a copy.

Durations are those of the kernels themselves, as torch.profiler (CUPTI) reports them, without Python, launches and
gaps. Before every pass, half a GiB is copied. This copy evicts the data of the previous pass from the cache,
separates the passes in the profile, and its duration gives the speed to compare with. A copy reads as much as it
writes; a kernel that reads more can be faster, because reading memory is faster than writing. So a sum of two such
tensors into a third is timed as well: no kernel is faster than the faster of these two.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch.profiler import ProfilerActivity, profile

from .. import console
from ..cell.case import Case, nan_in_fresh_memory
from ..errors import UserError
from ..results.rows import check_plausible, kernel_cells
from ..stages import Stage
from .gpu_trace import launch_occupancy, read_events, split_passes
from .implementations import WrongResult
from .pointwise import (
    PointwiseInputs,
    PointwisePart,
    check_kernel_results,
    from_stage,
    make_pointwise_inputs,
    pointwise_baselines,
)

KERNEL_SIZES = ((8192, 4096), (4096, 1024))  # B, S
KERNEL_PASSES = ("forward", "backward")
PROFILER_WARM_UP_ROUNDS, PROFILED_ROUNDS = 10, 30
COPIED = 2**29  # bytes: many times any cache


def measure_kernels(wanted: Sequence[Stage]) -> dict[str, list[dict]]:
    """The kernels' rows of every size, printed as they are measured, and what could not be measured."""
    rows, not_run = [], []
    implementations = pointwise_baselines()
    for stage in wanted:
        try:
            implementations.append(from_stage(stage))
        except UserError as error:
            not_run.append(kernels_not_run(f"stage {stage.number}", "all sizes", error))
    for B, S in KERNEL_SIZES:
        measured, missed = measure_kernels_at(implementations, B, S)
        console.say("\n" + format_kernel_rows(measured) + "\n")
        rows += measured
        not_run += missed
    return {"kernels": rows, "not_run": not_run}


def measure_kernels_at(implementations: Sequence[PointwisePart], B: int, S: int) -> tuple[list[dict], list[dict]]:
    """The rows of one size; uses and reports a smaller batch if the GPU's memory is too small."""
    rows_of_batch = B
    while rows_of_batch:
        try:
            with console.step(f"kernels of the pointwise part at B{rows_of_batch} S{S}"):
                rows, not_run = profile_kernels(implementations, rows_of_batch, S)
        except WrongResult:
            raise
        except torch.cuda.OutOfMemoryError:
            rows_of_batch //= 2
        except Exception as error:  # an error of the profiler must not discard earlier measurements
            return [], [kernels_not_run("every implementation", f"B{B} S{S}", error)]
        else:
            if rows_of_batch != B:
                reason = f"the GPU's memory is too small; measured with B{rows_of_batch} instead"
                not_run.append(kernels_not_run("every implementation", f"B{B} S{S}", reason))
            return rows, not_run
        gc.collect()  # outside the handler, where the exception would still hold the tensors
        torch.cuda.empty_cache()
    return [], [kernels_not_run("every implementation", f"B{B} S{S}", "even B1 does not fit the GPU's memory")]


def kernels_not_run(name: str, size: str, reason: object) -> dict[str, str]:
    """An entry of the list of what did not run."""
    first, *_ = [line.strip() for line in str(reason).splitlines() if line.strip()] or [type(reason).__name__]
    return {"name": name, "device": "cuda", "what": f"kernels alone, {size}", "reason": first[:200]}


def profile_kernels(implementations: Sequence[PointwisePart], B: int, S: int) -> tuple[list[dict], list[dict]]:
    """Checks, profiles and checks again; returns the rows of all implementations at one size and what did not run."""
    torch._dynamo.reset()
    sets = make_pointwise_inputs(B, S, "cuda")
    source = torch.ones(COPIED, dtype=torch.uint8, device="cuda")
    copy, third = torch.empty_like(source), torch.empty_like(source)
    last = {}

    def passes(implementation: PointwisePart, given: PointwiseInputs) -> None:
        copy.copy_(source)
        found = implementation.forward(given)
        copy.copy_(source)
        last[implementation.name] = given, found, implementation.backward(given, found)

    able, not_run = [], []
    for implementation in implementations:
        try:
            for given in sets:
                passes(implementation, given)  # torch.compile compiles
                with nan_in_fresh_memory() if implementation.stage else nullcontext():
                    passes(implementation, given)
                check_kernel_results(implementation, *last.pop(implementation.name), "before it is timed")
        except (WrongResult, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            if implementation.stage or implementation.name == "eager":
                raise
            not_run.append(kernels_not_run(implementation.name, f"B{B} S{S}", error))
        else:
            able.append(implementation)
    for rounds in (
        PROFILER_WARM_UP_ROUNDS,
        PROFILED_ROUNDS,
    ):  # warm up under the profiler as well
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for k in range(rounds):
                copy.copy_(source)
                torch.add(*(tensor.view(torch.float32) for tensor in (source, copy)), out=third.view(torch.float32))
                for implementation in able:
                    passes(implementation, sets[k % len(sets)])
            torch.cuda.synchronize()
    for implementation in able:
        check_kernel_results(implementation, *last.pop(implementation.name), "after it was timed")

    copies, work = split_passes(read_events(profiler), COPIED)
    of_round = 1 + 2 * len(able)
    expected = PROFILED_ROUNDS * of_round
    if len(work) != expected:
        raise UserError(f"torch.profiler reports {len(work)} passes on the GPU, but {expected} were made")
    sums = [sum(event["dur"] for event in events) for events in work[::of_round]]
    # From bytes per microsecond to GB/s.
    speeds = 2 * COPIED / statistics.median(copies) / 1e3, 3 * COPIED / statistics.median(sums) / 1e3
    rows = []
    for k, implementation in enumerate(able):
        for j, name in enumerate(KERNEL_PASSES):
            row = kernel_row(implementation, name, sets[0].case, work[1 + 2 * k + j :: of_round], *speeds)
            try:
                check_plausible(row)
            except UserError as error:
                not_run.append(kernels_not_run(f"{row['name']}, {name}", f"B{B} S{S}", error))
            else:
                rows.append(row)
    return rows, not_run


def kernel_row(
    implementation: PointwisePart,
    name: str,
    case: Case,
    passes: Sequence[Sequence[dict]],
    copy: float,
    total: float,
) -> dict:
    """The row of one implementation and pass, from the events of each sample and the speeds of a copy and a sum.

    Registers and occupancy are given if the pass is a single kernel.
    """
    if not all(passes):
        raise UserError(f"torch.profiler reports no kernel for the {name} pass of {implementation.name}")
    samples = [sum(event["dur"] for event in events) for events in passes]
    q1, median, q3 = (round(value, 3) for value in statistics.quantiles(samples, n=4, method="inclusive"))
    launch = passes[0][0]["args"] if len(passes[0]) == 1 else {}
    threads = block[0] * block[1] * block[2] if (block := launch.get("block")) else None
    tensors = implementation.stage.pointwise_tensors[KERNEL_PASSES.index(name)] if implementation.stage else None
    return {
        "name": implementation.name,
        "stage": implementation.stage.number if implementation.stage else None,
        "pass": name,
        "dtype": str(case.dtype).removeprefix("torch."),
        "B": case.B,
        "S": case.S,
        "kernels": len(passes[0]),
        "median": median,
        "q1": q1,
        "q3": q3,
        "samples": len(samples),
        "bytes": tensors * case.B * case.S * case.dtype.itemsize if tensors else None,
        "copy_gb_per_second": round(copy, 1),
        "sum_gb_per_second": round(total, 1),
        "registers": launch.get("registers per thread"),
        "threads_per_block": threads,
        "occupancy": launch_occupancy(launch, threads) if threads and "registers per thread" in launch else None,
    }


def format_kernel_rows(rows: Sequence[dict]) -> str:
    """The rows of one size as a table for the terminal."""
    header = ["pointwise part alone", "pass", "kernels", "microseconds", "GB/s", "of a copy's"]
    return console.table(header, [[row["name"], row["pass"], *kernel_cells(row)] for row in rows])
