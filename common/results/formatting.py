"""Formats recorded times: cells of tables, and the times of a stage that this machine cannot measure."""

from __future__ import annotations

from collections.abc import Sequence

from .. import console
from ..stages import Stage
from . import records
from .rows import EAGER, device_name, is_peer, select, size_label, speedup
from .sources import is_stale

GRADS_LABELS = {"all": "all inputs", "parameters": "weights and bias"}
PASSES = ("forward", "forward+backward")


def format_recorded_times(stage: Stage) -> str:
    """The recorded times of a stage on GPUs, as text for a machine that cannot time it."""
    title, rows = f"Stage {stage.number} runs on the emulator here, where times mean nothing.", recorded_rows(stage)
    if not rows:
        return f"{title} On a GPU: nothing recorded yet."
    table = console.table(["", "machine", "size", *PASSES], rows)
    return f"{title} Recorded on GPUs, in microseconds\n(in brackets: times as fast as eager):\n{table}"


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
                    format_time_and_speedup(row),
                    format_time_and_speedup(both),
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


def find_strongest_peer(rows: Sequence[dict], row: dict) -> dict | None:
    """The fastest implementation without C++ in the same run at the same size, pass and gradients."""
    peers = (find_same_case(rows, row, name) for name in dict.fromkeys(r["name"] for r in rows if is_peer(r)))
    return min(filter(None, peers), key=lambda peer: peer["ratio"], default=None)


def format_microseconds(row: dict | None) -> str:
    """A median, with one decimal if it is below ten."""
    if row is None:
        return "not run"
    return f"{row['median']:.1f}" if row["median"] < 10 else f"{row['median']:,.0f}"


def format_stage_time(row: dict, rows: Sequence[dict]) -> str:
    """The time of a row as the end of a sentence, beside eager and the strongest peer in the same run."""
    return f"{format_microseconds(row)} us at {size_label(row)}, {format_speedups(row, rows)}"


def format_speedups(row: dict, rows: Sequence[dict]) -> str:
    """How many times as fast as eager a row is, and as the strongest peer, if this is not eager itself."""
    peer = find_strongest_peer(rows, row)
    of_eager = f"{1 / row['ratio']:.2f} times as fast as eager"
    if peer is None or peer["name"] == EAGER:
        return of_eager
    return f"{of_eager} and {speedup(row, peer):.2f} times as fast as the strongest peer ({peer['name']})"


def format_time_and_speedup(row: dict | None) -> str:
    """A median, and how many times as fast as eager it is."""
    return "not run" if row is None else f"{format_microseconds(row)} ({1 / row['ratio']:.2f})"


def first_error(reason: str) -> str:
    """The first error in a recorded message of g++ or of the emulator, without what follows it."""
    return reason.partition("error: ")[2].partition(" (races)")[0] or reason
