"""Times sequences: configurations, rows, and the table that is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from ... import console
from ...build.library import build_stage
from ...build.modules import load_stage
from ...cell.memory import peak_bytes
from ...errors import UserError
from ...results.rows import size_in_memory
from ...sequence.case import SequenceCase
from ...sequence.rungs import rungs_of
from ...stages import Stage
from .. import cell_times
from ..implementations import Implementation, InputSet, Run, WrongResult, make_input_sets
from ..passes import first_line, not_run_entry, time_case
from ..quiet import measure_while_quiet, settle
from . import peers

# The LLTM has no forget gate: with the weights of `torch.nn.LSTM`, it amplifies rounding so much in 128 steps or more
# that the plain loop misses the bound of the check, too: gradients in float32, outputs in bfloat16. With weights of a
# twentieth of that size it does not, even in 1024 steps of bfloat16 with a float cell. Times do not depend on them.
LLTM_GAIN = 0.05


@dataclass(frozen=True)
class Configuration:
    """A case to time: `maths` is how products are computed, "TF32" only for float32."""

    cell: str
    T: int
    B: int
    I: int
    S: int
    dtype: str = "float32"
    maths: str = "IEEE"

    def case(self, device: str) -> SequenceCase:
        """The case on a device."""
        dtype, gain = getattr(torch, self.dtype), LLTM_GAIN if self.cell == "lltm" else 1.0
        return SequenceCase(self.cell, self.T, self.B, self.I, self.S, dtype=dtype, device=device, gain=gain)


@dataclass(frozen=True)
class Plan:
    """The plan of a measurement: configurations by device, and for how long."""

    configurations: dict[str, tuple[Configuration, ...]]
    rounds: int
    block_seconds: float = 0.005
    repeats: bool = False  # whether to time torch's module before and after each, to see that the machine was quiet


MEDIUM, WIDE, LONG = (128, 64, 256, 512), (128, 64, 512, 512), (1024, 16, 768, 768)  # T, B, I, S
SMALL = (128, 16, 32, 128)
ON_CPU = tuple(Configuration(cell, *SMALL) for cell in ("lltm", "lstm", "gru"))
ON_GPU = (
    *(Configuration(cell, *MEDIUM, maths=maths) for maths in ("IEEE", "TF32") for cell in ("lltm", "lstm", "gru")),
    *(Configuration(cell, *size, "bfloat16") for size in (WIDE, LONG) for cell in ("lltm", "lstm")),
    Configuration("gru", *WIDE, "bfloat16"),
    Configuration("lstm", *WIDE, "float16"),
    Configuration("lltm", 32, 16, 32, 128),  # short enough for torch.compile of the loop
)
FULL = Plan({"cpu": (*ON_CPU, Configuration("lltm", 32, *SMALL[1:])), "cuda": ON_GPU}, rounds=30, repeats=True)
TOUR = Plan({"cpu": ON_CPU[:2], "cuda": ON_GPU[:2]}, rounds=10)
GLANCE = replace(TOUR, configurations={"cpu": ON_CPU[:1], "cuda": ON_GPU[:1]})


def parts_of(device: str, stage: Stage, plan: Plan, repeats: list[dict]) -> Iterator[tuple]:
    """The functions that measure a plan, each with its arguments: the baseline's first time, then the configurations.

    Each returns entries of a record by the name of their list. The caller adds the "repeats" to `repeats`, before it
    asks for the next function.
    """
    every = plan.configurations[device]
    baseline = next((one for one in every if plan.repeats and one.cell != "lltm"), None)
    if baseline:
        yield settle_baseline, baseline, device, plan
    for configuration in every:
        before = [one for one in repeats if one["device"] == device and "name" in one]
        yield measure_part, configuration, baseline, device, stage, plan, before


def settle_baseline(configuration: Configuration, device: str, plan: Plan) -> dict[str, list[dict]]:
    """The first times of torch's own module alone."""
    return {"repeats": [settle(partial(repeat_baseline, configuration, device, plan))]}


def measure_part(
    configuration: Configuration,
    baseline: Configuration | None,
    device: str,
    stage: Stage,
    plan: Plan,
    before: Sequence[dict],
) -> dict[str, list[dict]]:
    """The rows of one configuration, printed, what could not run, and the baseline's times after it.

    `before` are the baseline's times until now, to which these must be equal.
    """
    cell_times.compile_on_all_cores(device)
    measure = partial(measure_and_print, configuration, device, stage, plan)
    repeat = partial(repeat_baseline, baseline, device, plan) if baseline else None
    found, after = measure_while_quiet(measure, repeat, before)
    return found | {"repeats": after}


def measure_and_print(configuration: Configuration, device: str, stage: Stage, plan: Plan) -> dict[str, list[dict]]:
    """The rows of one configuration, printed, and what could not run."""
    try:
        rows, not_run = measure_configuration(configuration, device, target_for(stage, device), plan)
    except (UserError, WrongResult) as error:  # the other configurations do not depend on this one
        what = describe(configuration, device)
        return {"not_run": [not_run_entry("every implementation", device, what, first_line(error))]}
    console.say(f"\n{format_rows(rows)}{cell_times.warn_if_disturbed(rows)}\n")
    return {"sequences": rows, "not_run": not_run}


def target_for(stage: Stage, device: str) -> str:
    """The target whose tensors are on a device. Raises `UserError` if there is none."""
    target = "cuda" if device == "cuda" else "host"
    if target not in stage.targets:
        raise UserError(f"it has no code for {device.upper()} tensors")
    build_stage(stage, target)
    return target


def repeat_baseline(configuration: Configuration, device: str, plan: Plan) -> dict[str, object]:
    """The times of torch's own module alone, which show whether the machine is as quiet as before."""
    case = configuration.case(device)
    with peers.float32_maths(configuration.maths):
        sets = make_input_sets(case, tf32=configuration.maths == "TF32")
        peers.flatten_for_cudnn(sets)
        (baseline, *_), _ = peers.find_peers(case)
        what = f"To see whether this machine is quiet, {describe(configuration, device)}"
        rows, _ = time_case([baseline], sets, what, plan.rounds, plan.block_seconds)
    facts = {name: getattr(configuration, name) for name in ("B", "I", "S")}
    medians = {row["pass"]: row["median"] for row in rows}
    return {"name": baseline.name, "device": device, **facts, "medians": medians}


def measure_configuration(
    configuration: Configuration, device: str, target: str, plan: Plan
) -> tuple[list[dict], list[dict]]:
    """The rows of one configuration: the peers, the baseline first, then stage 7's rungs and its own choice."""
    case, what = configuration.case(device), describe(configuration, device)
    with peers.float32_maths(configuration.maths):
        sets = make_input_sets(case, tf32=configuration.maths == "TF32")
        peers.flatten_for_cudnn(sets)
        found, left_out = peers.find_peers(case)
        rungs = [rung for rung in rungs_of(target, device) if rung != "cpu"]
        found += peers.stage_rungs(case, load_stage(7, target), target, [*rungs, None])
        rows, not_run = time_case(found, sets, what, plan.rounds, plan.block_seconds)
        peaks = measure_peaks(found, sets, {row["name"] for row in rows})
    facts = configuration_facts(configuration, device)
    not_run += [not_run_entry(name, device, what, reason) for name, reason in left_out]
    baseline = rows[0]["name"]
    return [row | facts | {"baseline": baseline, "peak_bytes": peaks[row["name"]]} for row in rows], not_run


def measure_peaks(found: Sequence[Implementation], sets: Sequence[InputSet], ran: set[str]) -> dict[str, int]:
    """The most bytes that a training step of each implementation has in use beyond its arguments."""
    peaks = {}
    for implementation in found:
        if implementation.name in ran:
            run = Run(implementation, sets, backward=True)
            peaks[implementation.name] = peak_bytes(run, sets[0].case.device)
    return peaks


def configuration_facts(configuration: Configuration, device: str) -> dict[str, object]:
    """The fields of a row that describe its configuration."""
    names = ("cell", "T", "B", "I", "S", "dtype", "maths")
    facts = {name: getattr(configuration, name) for name in names}
    return facts | {"device": device, "threads": torch.get_num_threads() if device == "cpu" else None}


def describe(configuration: Configuration, device: str) -> str:
    """A description of a configuration for output."""
    c = configuration
    maths = f" ({c.maths})" if c.dtype == "float32" else ""
    return f"{c.cell.upper()} T{c.T} B{c.B} I{c.I} S{c.S}, {c.dtype}{maths} on {device.upper()} tensors"


def format_rows(rows: Sequence[dict]) -> str:
    """The rows of one configuration as a table: a line for each implementation, with its two passes side by side."""
    fast = "times as fast"  # as the baseline, the first line
    header = ["", "forward", fast, "forward+backward", fast, "saved for backward", "peak"]
    lines = []
    for row in rows:
        if row["pass"] != "forward":
            continue
        both = next(r for r in rows if r["name"] == row["name"] and r["pass"] != "forward")
        cells = [text for r in (row, both) for text in (format_milliseconds(r), f"{1 / r['ratio']:.2f}")]
        lines.append([row["name"], *cells, size_in_memory(row), f"{row['peak_bytes'] / 2**20:,.1f} MiB"])
    return console.table(header, lines)


def format_milliseconds(row: dict) -> str:
    """A median with its quartiles, in milliseconds."""
    median, q1, q3 = (f"{row[name] / 1e3:,.3f}" for name in ("median", "q1", "q3"))
    return f"{median} ms ({q1} to {q3})"


def compare_sequences(target: str, device: str) -> list[dict]:
    """Times stage 7 against its peers at one configuration, in this process; `make stage-7` ends with it.

    On the emulator, it times nothing.
    """
    rows: list[dict] = []
    if target == "emulator":
        console.say("\nStage 7 runs on the emulator here, where times mean nothing.")
        return rows
    for configuration in GLANCE.configurations[device]:
        measured, not_run = measure_configuration(configuration, device, target, GLANCE)
        for entry in not_run:
            console.say(f"  not run: {entry['name']}: {entry['reason']}")
        console.say("\n" + format_rows(measured) + cell_times.warn_if_disturbed(measured))
        rows += measured
    return rows
