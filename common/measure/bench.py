"""`make bench`: times the stages, eager and torch.compile, each device in a separate process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from .. import console, stages
from ..cell.case import Case
from ..errors import UserError
from ..paths import display_path
from ..results import records, schema, sources
from ..results.formatting import format_recorded_times
from ..results.rows import describe_drift, quiet_part
from ..stages import Stage
from . import kernel_times, last_tour
from .cell_times import (
    MATHS,
    Plan,
    format_rows,
    ieee_float32,
    measure_cell,
    measure_cell_on,
    warn_if_disturbed,
)
from .implementations import MODES, baselines, stage_implementation
from .passes import not_run_entry
from .sequence import times

SMALL_SIZE, MEDIUM_SIZE = (16, 32, 128), (64, 1024, 128)  # B, I, S
FULL = Plan(
    sizes={"cpu": (SMALL_SIZE, MEDIUM_SIZE, (256, 256, 512)), "cuda": (SMALL_SIZE, MEDIUM_SIZE, (4096, 1024, 1024))},
    grads=("all", "parameters"),
    modes=MODES[:1],
    rounds=50,
    block_seconds=0.015,
    kernels=True,
    graphs=True,
    repeats=True,
)
TOUR = Plan(
    sizes=dict.fromkeys(FULL.sizes, (SMALL_SIZE, MEDIUM_SIZE)),
    grads=("all",),
    modes=FULL.modes,
    rounds=20,
    block_seconds=FULL.block_seconds,
    graphs=True,
)
GLANCE = replace(TOUR, sizes=dict.fromkeys(FULL.sizes, (SMALL_SIZE,)), modes=None)


def measure_stages(plan: Plan, devices: Sequence[str], wanted: Sequence[Stage], output: Path | None) -> dict:
    """Measures the stages by a plan on the given devices and returns the result; also writes it to `output`.

    Each device is measured in a separate process, because a process can load only one target of a stage.
    """
    hashes = hash_stages(wanted)
    result = {"schema": schema.SCHEMA, "quick": plan.rounds < FULL.rounds, **records.start_record(hashes)}
    result |= {"rows": [], "kernels": [], "sequences": [], "not_run": [], "repeats": []}
    if "cuda" not in devices:
        result["not_run"].append(
            not_run_entry("every implementation", "cuda", "all sizes", "no GPU that torch can use")
        )
    for device in reversed(devices):  # a GPU first
        with new_process() as run:
            for function, *arguments in parts_of(plan, device, wanted, result["repeats"]):
                for part, entries in run(function, *arguments).items():
                    result[part] += entries
                if output:
                    records.write_result(result, output)  # a later part may crash the machine
    say_what_is_missing(result, devices, wanted)
    return result


def hash_stages(wanted: Sequence[Stage]) -> dict[str, str]:
    """The hashes of stage 1, which has eager's cell, and of the stages to measure, by their numbers."""
    return {str(stage.number): sources.hash_stage(stage) for stage in [stages.find_stage(1), *wanted]}


def say_what_is_missing(result: dict, devices: Sequence[str], wanted: Sequence[Stage]) -> None:
    """Prints what was not measured and why, and without a GPU the recorded times of stages that only it runs."""
    for entry in result["not_run"]:
        console.say(f"  not run: {entry['name']}, {entry['what']} ({entry['device']}): {entry['reason']}")
    if "cuda" not in devices:
        for stage in wanted:
            if is_only_emulated(stage):
                console.say("\n" + format_recorded_times(stage))


def parts_of(plan: Plan, device: str, wanted: Sequence[Stage], repeats: list[dict]) -> Iterator[tuple]:
    """The functions that measure the stages on a device, each with its arguments: cells, kernels, then sequences.

    The caller adds what each of them has found to `repeats`, the baselines' times.
    """
    cells = [stage for stage in wanted if stage.kind == "cell"]
    if cells:
        yield measure_cell_on, device, cells, plan
    if cells and plan.kernels and device == "cuda":
        yield kernel_times.measure_kernels, [stage for stage in cells if stage.pointwise_tensors]
    for stage in wanted:
        if stage.kind == "sequence":
            is_full = plan.rounds >= FULL.rounds
            yield from times.parts_of(device, stage, times.FULL if is_full else times.TOUR, repeats)


@contextmanager
def new_process() -> Iterator[Callable]:
    """A function that calls `function(*arguments)` in a new process, always the same one.

    It raises `UserError` if the process is killed.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:

        def run(function: Callable, *arguments: object) -> Any:
            try:
                return pool.submit(function, *arguments).result()
            except BrokenProcessPool:
                raise UserError("the measuring process was killed; the usual cause is too little memory") from None

        yield run


def run_in_process(function: Callable, *arguments: object) -> Any:
    """Calls `function(*arguments)` in a new process. Raises `UserError` if the process is killed."""
    with new_process() as run:
        return run(function, *arguments)


def available_devices() -> list[str]:
    """The devices whose tensors can be measured on this machine."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def record_benchmark(
    quick: bool = False,
    output: str | None = None,
    tuned: bool = False,
    device: str | None = None,
    only: str | None = None,
) -> int:
    """Runs the full measurement of every stage on CPU tensors and, if there is a GPU, on CUDA tensors.

    `device` limits it to "cpu" or "cuda", `only` to the stages of one kind, "cell" or "sequence". With `tuned`, also
    compares with torch.compile's max-autotune, which takes minutes to choose kernels.
    """
    path = Path(output) if output else records.MEASURED
    console.say(
        f"Times are medians (with quartiles) in microseconds; {MATHS} float32. Run nothing else at the same time."
    )
    plan = TOUR if quick else FULL
    plan = replace(plan, modes=MODES) if tuned else plan
    wanted = [stage for stage in stages.timed_stages() if only in (None, stage.kind)]
    result = measure_stages(plan, devices_to_measure(device), wanted, path)
    console.say(f"\nWritten to {display_path(path)}; `make report` plots it.")
    if drift := describe_drift(result):
        console.say(f"It cannot be recorded in docs/results/: {drift}.\n{save_quiet_part(result, path)}")
    return int(bool(drift))


def save_quiet_part(result: dict, path: Path) -> str:
    """Writes the part of a result that can be recorded, if there is one, beside it; returns what to print."""
    part = quiet_part(result)
    if not part["rows"] and not part["sequences"]:
        return "So did its other baselines: nothing of this run can be recorded."
    quiet = path.with_stem(f"{path.stem}_quiet")
    records.write_result(part, quiet)
    return f"{display_path(quiet)} has the part that can: the other baselines did not change."


def devices_to_measure(wanted: str | None) -> list[str]:
    """The wanted device, or every one of this machine. Raises `UserError` if the wanted one is not here."""
    devices = available_devices()
    if wanted not in (None, *devices):
        raise UserError("--device cuda: torch can use no GPU here; `make doctor` says why")
    return [wanted] if wanted else devices


def measure_for_tour(wanted: Sequence[Stage]) -> dict:
    """The measurement of `make tour`: two sizes, on the GPU if there is one; kept in out/bench.json.

    The last one is shown again while nothing has changed.
    """
    timed = [stage for stage in wanted if stage.is_timed]
    devices = available_devices()[-1:]
    last = last_tour.find_last(TOUR, devices[0], hash_stages(timed))
    if not last:
        return measure_stages(TOUR, devices, timed, records.MEASURED)
    last_tour.show_again(last)
    say_what_is_missing(last, devices, timed)
    return last


def is_only_emulated(stage: Stage) -> bool:
    """Whether only the emulator can run a stage on CPU tensors."""
    return "host" not in stage.targets and "emulator" in stage.targets


def compare_with_eager(stage: Stage, target: str, device: str) -> list[dict]:
    """Times a stage against eager or its peers at one size, in this process; `make stage-N` ends with it.

    On the emulator, it times nothing and shows the recorded times of other machines.
    """
    if stage.kind == "sequence":
        return times.compare_sequences(target, device)
    if target == "emulator":
        console.say("\n" + format_recorded_times(stage))
        return []
    with ieee_float32():
        implementations = [*baselines(device, GLANCE.modes), stage_implementation(stage, device)]
        (B, I, S), *_ = GLANCE.sizes[device]
        case = Case(B, I, S, device=device)
        rows, _ = measure_cell(implementations, case, GLANCE)
    console.say("\n" + format_rows(rows) + warn_if_disturbed(rows))
    return rows
