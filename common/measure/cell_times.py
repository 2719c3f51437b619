"""Times the cell: every implementation, one size after another."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import torch

from .. import console
from ..cell.case import INPUTS, Case
from ..errors import UserError
from ..results.rows import DISTURBED, GRAPH_PEERS, is_disturbed, size_in_memory
from ..stages import Stage
from .implementations import (
    Implementation,
    baselines,
    make_input_sets,
    stage_implementation,
    under_cuda_graph,
)
from .passes import first_line, not_run_entry, time_case
from .quiet import measure_while_quiet, settle

REQUIRES_GRAD = {"all": INPUTS, "parameters": ("weights", "bias")}
MATHS = "IEEE"


@dataclass(frozen=True)
class Plan:
    """The plan of a measurement: sizes (B, I, S) by device, which inputs need gradients, and for how long."""

    sizes: dict[str, tuple[tuple[int, int, int], ...]]
    grads: tuple[str, ...]
    modes: tuple[str, ...] | None  # modes of torch.compile besides its default; None: compare with eager alone
    rounds: int
    block_seconds: float
    kernels: bool = False  # whether to time the pointwise kernels alone, too, on a GPU
    graphs: bool = False  # whether to time eager, torch.compile and the last stage under CUDA graphs, too, on a GPU
    repeats: bool = False  # whether to time eager at the first size repeatedly, to see that the machine was quiet


def measure_cell(implementations: Sequence[Implementation], case: Case, plan: Plan) -> tuple[list[dict], list[dict]]:
    """The rows of all implementations at one size (eager first), and which could not run at that size and why.

    Raises `WrongResult` if an implementation is wrong before or after it is timed.
    """
    what = describe_case(case)
    rows, not_run = time_case(implementations, make_input_sets(case), what, plan.rounds, plan.block_seconds)
    return [row | case_facts(case) for row in rows], not_run


def case_facts(case: Case) -> dict[str, object]:
    """The fields of a row that describe its case."""
    return {
        "device": case.device,
        "dtype": str(case.dtype).removeprefix("torch."),
        "maths": MATHS,
        "threads": torch.get_num_threads() if case.device == "cpu" else None,
        "grads": next(name for name, inputs in REQUIRES_GRAD.items() if inputs == case.requires_grad),
        "B": case.B,
        "I": case.I,
        "S": case.S,
    }


def measure_cell_at(
    implementations: Sequence[Implementation], case: Case, plan: Plan
) -> tuple[list[dict], list[dict]]:
    """Calls `measure_cell`, halving the batch until it fits into the GPU's memory; reports the change."""
    smaller = case
    while smaller.B >= 1:
        try:
            rows, not_run = measure_cell(implementations, smaller, plan)
        except torch.cuda.OutOfMemoryError:
            smaller = replace(smaller, B=smaller.B // 2)
        else:
            if smaller != case:
                reason = f"the GPU's memory is too small; measured with B{smaller.B} instead"
                not_run = [not_run_entry("every implementation", case.device, describe_case(case), reason), *not_run]
            return rows, not_run
        gc.collect()  # outside the handler, where the exception would still hold the tensors
        torch.cuda.empty_cache()
    return [], [
        not_run_entry(
            "every implementation", case.device, describe_case(case), "even B1 does not fit the GPU's memory"
        )
    ]


def measure_cell_on(device: str, wanted: Sequence[Stage], plan: Plan) -> dict[str, list[dict]]:
    """The rows on CPU or CUDA tensors, printed as they are measured, what could not run, and the repeats of eager."""
    rows, not_run, repeats = [], [], []
    compile_on_all_cores(device)
    with ieee_float32():
        implementations = baselines(device, plan.modes)
        for stage in wanted:
            try:
                implementations.append(stage_implementation(stage, device))
            except UserError as error:
                not_run.append(not_run_entry(f"stage {stage.number}", device, "all sizes", first_line(error)))
        if plan.graphs and device == "cuda":
            implementations += list_cuda_graphs(implementations)
        repeat = partial(repeat_eager, implementations[0], device, plan) if plan.repeats else None
        if repeat:
            repeats.append(settle(repeat))
        for (B, I, S), grads in product(plan.sizes[device], plan.grads):
            case = Case(B, I, S, device=device, requires_grad=REQUIRES_GRAD[grads])
            measure = partial(measure_and_print, implementations, case, plan)
            (measured, missed), after = measure_while_quiet(measure, repeat, repeats)
            rows += measured
            not_run += missed
            repeats += after
    return {"rows": rows, "not_run": not_run, "repeats": repeats}


def list_cuda_graphs(implementations: Sequence[Implementation]) -> list[Implementation]:
    """The strongest peers of a small cell, and the last stage, under CUDA graphs."""
    graphs = [under_cuda_graph(one) for one in implementations]
    return [one for one in graphs if one.name in GRAPH_PEERS or one is graphs[-1]]


def measure_and_print(
    implementations: Sequence[Implementation], case: Case, plan: Plan
) -> tuple[list[dict], list[dict]]:
    """Calls `measure_cell_at` and prints the rows."""
    measured, missed = measure_cell_at(implementations, case, plan)
    console.say("\n" + format_rows(measured) + warn_if_disturbed(measured) + "\n")
    return measured, missed


def compile_on_all_cores(device: str) -> None:
    """Lets torch.compile use every core if a GPU is measured: there, only the core that launches kernels matters."""
    if device == "cuda":
        torch._inductor.config.compile_threads = os.cpu_count()


def repeat_eager(eager: Implementation, device: str, plan: Plan) -> dict[str, object]:
    """The medians of eager's passes at the plan's first size, in microseconds."""
    console.say("To see whether this machine is quiet, eager alone:")
    (B, I, S), *_ = plan.sizes[device]
    rows, _ = measure_cell([eager], Case(B, I, S, device=device), plan)
    return {"device": device, "B": B, "I": I, "S": S, "medians": {row["pass"]: row["median"] for row in rows}}


@contextmanager
def ieee_float32() -> Iterator[None]:
    """Computes matrix products in IEEE float32, whatever was set before, and hides the advice to use TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def describe_case(case: Case) -> str:
    """A description of a case for output."""
    grads = "all inputs" if case.requires_grad == INPUTS else "weights and bias"
    return f"B{case.B} I{case.I} S{case.S} on {case.device.upper()} tensors, gradients for {grads}"


def format_rows(rows: Sequence[dict]) -> str:
    """The rows of one size as a table: a line for each implementation, with its two passes side by side."""
    fast = "times as fast"  # as eager, the first line
    header = ["", "forward", fast, "forward+backward", fast, "saved for backward"]
    lines = []
    for row in rows:
        if row["pass"] != "forward":
            continue
        both = next(r for r in rows if r["name"] == row["name"] and r["pass"] != "forward")
        cells = [f(r) for r in (row, both) for f in (format_time, lambda r: f"{1 / r['ratio']:.2f}")]
        lines.append([row["name"], *cells, size_in_memory(row)])
    return console.table(header, lines)


def warn_if_disturbed(rows: Sequence[dict]) -> str:
    """A remark if the samples of CPU rows vary more than on an idle machine."""
    return f"\n  {DISTURBED}" if any(map(is_disturbed, rows)) else ""


def format_time(row: dict) -> str:
    """A median with its quartiles, in microseconds."""
    digits = 1 if row["median"] < 1000 else 0
    median, q1, q3 = (f"{row[name]:,.{digits}f}" for name in ("median", "q1", "q3"))
    return f"{median} us ({q1} to {q3})"
