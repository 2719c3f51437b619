"""What a hand-written extension gained over what needs none, on each recorded machine: rows for a decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import results
from .results import device_name, select, size_of, unique
from .tables import markdown, microseconds, place, same_case

EXPLAINED = (
    "Microseconds. *Gain*: the time of the fastest that needs no C++, as a multiple of the fastest stage's; above "
    "one, C++ and CUDA were worth something there."
)


def whole_cell() -> str:
    """The cell with its matrix products, for each recorded machine, device, size and pass."""
    parts = [
        cells_of(result, device)
        for result in results.recorded()
        for device in unique(result["rows"], "device")
        if select(result, device=device, grads="all")
    ]
    return "\n\n".join([EXPLAINED, *parts]) if parts else "Nothing recorded yet."


def cells_of(result: dict, device: str) -> str:
    """One machine and device: a line for each size and pass."""
    rows = select(result, device=device, grads="all")
    lines = []
    for row in (row for row in rows if row["name"] == "eager"):
        same = [found for name in unique(rows, "name") if (found := same_case(rows, row, name))]
        lines.append([size_of(row), row["pass"], *compared(*apart(same), lambda row: row["ratio"])])
    return f"{place(result, rows)}\n\n{table(['size', 'pass'], lines)}"


def apart(rows: Sequence[dict]) -> tuple[list[dict], list[dict]]:
    """Who needed no C++ and who did; stage 1 is eager with checks, and left out."""
    return [row for row in rows if row["stage"] is None], [row for row in rows if row["stage"] not in (None, 1)]


def pointwise() -> str:
    """The pointwise part alone, for each recorded GPU."""
    parts = []
    for result in (result for result in results.recorded() if result.get("kernels")):
        lines = []
        for row in (row for row in result["kernels"] if row["name"] == "eager"):
            same = [other for other in result["kernels"] if all(other[f] == row[f] for f in ("B", "S", "pass"))]
            facts = [f"B{row['B']} S{row['S']}", row["pass"]]
            lines.append([*facts, *compared(*apart(same), lambda row: row["median"])])
        parts.append(f"{headline(result)}\n\n{table(['size', 'pass'], lines)}")
    return "\n\n".join(parts) if parts else "Nothing recorded yet."


def compared(without: Sequence[dict], staged: Sequence[dict], time: Callable[[dict], float]) -> list[str]:
    """Who is fastest without C++ and with it, how fast, and the ratio of the two."""
    found, mine = min(without, key=time), min(staged, key=time)
    return [found["name"], microseconds(found), mine["name"], microseconds(mine), f"{time(found) / time(mine):.2f}"]


def table(facts: list[str], lines: list[list[str]]) -> str:
    header = [*facts, "fastest without C++", "us", "fastest stage", "us", "gain"]
    return markdown(header, lines, left=3)


def headline(result: dict) -> str:
    """Where and when kernels alone were measured."""
    torch = result["versions"]["torch"].partition("+")[0]
    return f"**{device_name(result, 'cuda')}**, CUDA tensors, float32, torch {torch}, {result['date'][:10]}"
