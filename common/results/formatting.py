"""Formats recorded times: cells of tables, and the times of a stage that this machine cannot measure."""

from __future__ import annotations

from collections.abc import Sequence

from .. import console
from ..stages import Stage
from . import records
from .rows import baseline_names, device_name, select, size_label
from .sources import is_stale

GRADS_LABELS = {"all": "all inputs", "parameters": "weights and bias"}
PASSES = ("forward", "forward+backward")


def format_recorded_times(stage: Stage) -> str:
    """The recorded times of a stage on GPUs, as text for a machine that cannot time it."""
    title, rows = f"Stage {stage.number} runs on the emulator here, where times mean nothing.", recorded_rows(stage)
    if not rows:
        return f"{title} On a GPU: nothing recorded yet."
    table = console.table(["", "machine", "size", *PASSES], rows)
    return f"{title} Recorded on GPUs, in microseconds\n(in brackets the multiple of eager's):\n{table}"


def recorded_rows(stage: Stage) -> list[list[str]]:
    """A stage's name, machine, size, and times of both passes, for each size recorded on CUDA tensors."""
    lines = []
    for result in records.read_recorded():
        for row in select(result, stage=stage.number, device="cuda", grads="all"):
            if row["pass"] == "forward":
                both = find_same_case(result["rows"], row | {"pass": "forward+backward"}, row["name"])
                cells = [
                    marked_name(row, result),
                    device_name(result, "cuda"),
                    size_label(row),
                    format_time_and_ratio(row),
                    format_time_and_ratio(both),
                ]
                lines.append(cells)
    return lines


def describe_origin(result: dict, rows: Sequence[dict]) -> str:
    """Where (in bold) and how rows were measured."""
    row = rows[0]
    threads = f", {row['threads']} threads" if row["threads"] else ""
    torch = result["versions"]["torch"].partition("+")[0]
    return (
        f"**{device_name(result, row['device'])}**, {row['device'].upper()} tensors{threads}, {row['dtype']} "
        f"({row['maths']}), torch {torch}, {result['date'][:10]}"
    )


def marked_name(row: dict, result: dict) -> str:
    """An implementation's name, marked when its sources have changed since."""
    return f"{row['name']} (stale: sources changed since)" if is_stale(row, result) else row["name"]


def find_same_case(rows: Sequence[dict], row: dict, name: str) -> dict | None:
    """The row of another implementation in the same run at the same size, pass and gradients."""
    facts = ("B", "I", "S", "pass", "grads", "device")
    return next((r for r in rows if r["name"] == name and all(r[f] == row[f] for f in facts)), None)


def time_ratio(row: dict, other: dict) -> float:
    """The time of a row as a multiple of another row's; both were compared with eager, round by round."""
    return row["ratio"] / other["ratio"]


def format_microseconds(row: dict | None) -> str:
    """A median, with one decimal if it is below ten."""
    if row is None:
        return "not run"
    return f"{row['median']:.1f}" if row["median"] < 10 else f"{row['median']:,.0f}"


def format_stage_time(row: dict, rows: Sequence[dict]) -> str:
    """The time of a row as the end of a sentence, with its multiples of other implementations in the same run."""
    others = [(name, other) for name in baseline_names(list(rows)) if (other := find_same_case(rows, row, name))]
    ratios = " and ".join(f"{time_ratio(row, other):.2f} of {name}'s" for name, other in others)
    return f"{format_microseconds(row)} us at {size_label(row)} ({ratios})"


def format_time_and_ratio(row: dict | None) -> str:
    """A median with its multiple of eager's."""
    return "not run" if row is None else f"{format_microseconds(row)} ({row['ratio']:.2f})"


def first_error(reason: str) -> str:
    """The first error in a recorded message of g++ or of the emulator, without what follows it."""
    return reason.partition("error: ")[2].partition(" (races)")[0] or reason
