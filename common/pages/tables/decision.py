"""What a hand-written extension gained over what needs none, on each recorded machine: rows for a decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...results import records
from ...results.formatting import describe_origin, find_same_case, format_microseconds
from ...results.rows import device_name, is_peer, select, size_label, unique
from ..markdown import markdown_table

EXPLAINED = (
    "Times are in microseconds. *Gain* is the time of the fastest implementation without C++ divided by the time of "
    "the fastest stage. Above one, C++ and CUDA gained something."
)


def cell_decision() -> str:
    """The cell with its matrix products, for each recorded machine, device, size and pass."""
    parts = [
        device_table(result, device)
        for result in records.read_recorded()
        for device in unique(result["rows"], "device")
        if select(result, device=device, grads="all")
    ]
    return "\n\n".join([EXPLAINED, *parts]) if parts else "Nothing recorded yet."


def device_table(result: dict, device: str) -> str:
    """One machine and device: a line for each size and pass."""
    rows = select(result, device=device, grads="all")
    lines = []
    for row in (row for row in rows if row["name"] == "eager"):
        same = [found for name in unique(rows, "name") if (found := find_same_case(rows, row, name))]
        lines.append([size_label(row), row["pass"], *compare_fastest(*split_by_cpp(same), lambda row: row["ratio"])])
    return f"{describe_origin(result, rows)}\n\n{gain_table(['size', 'pass'], lines)}"


def split_by_cpp(rows: Sequence[dict]) -> tuple[list[dict], list[dict]]:
    """The rows without C++ and those of stages with it.

    Stage 1, which is eager with checks, is left out, and so is a stage under a CUDA graph.
    """
    return [row for row in rows if is_peer(row)], [row for row in rows if row["stage"] not in (None, 1)]


def pointwise_decision() -> str:
    """The pointwise part alone, for each recorded GPU."""
    parts = []
    for result in (result for result in records.read_recorded() if result.get("kernels")):
        lines = []
        for row in (row for row in result["kernels"] if row["name"] == "eager"):
            same = [other for other in result["kernels"] if all(other[f] == row[f] for f in ("B", "S", "pass"))]
            facts = [f"B{row['B']} S{row['S']}", row["pass"]]
            lines.append([*facts, *compare_fastest(*split_by_cpp(same), lambda row: row["median"])])
        parts.append(f"{describe_gpu_run(result)}\n\n{gain_table(['size', 'pass'], lines)}")
    return "\n\n".join(parts) if parts else "Nothing recorded yet."


def compare_fastest(without: Sequence[dict], staged: Sequence[dict], time: Callable[[dict], float]) -> list[str]:
    """The fastest without C++ and the fastest with it, their times, and the ratio of the two."""
    found, mine = min(without, key=time), min(staged, key=time)
    return [
        found["name"],
        format_microseconds(found),
        mine["name"],
        format_microseconds(mine),
        f"{time(found) / time(mine):.2f}",
    ]


def gain_table(facts: list[str], lines: list[list[str]]) -> str:
    header = [*facts, "fastest without C++", "us", "fastest stage", "us", "gain"]
    return markdown_table(header, lines, left=3)


def describe_gpu_run(result: dict) -> str:
    """Where and when kernels alone were measured."""
    torch = result["versions"]["torch"].partition("+")[0]
    return f"**{device_name(result, 'cuda')}**, CUDA tensors, float32, torch {torch}, {result['date'][:10]}"
