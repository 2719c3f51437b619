"""What a hand-written extension gained over what needs none, on each recorded machine: rows for a decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import results
from .results import device_name, select, size_of, unique
from .tables import markdown, microseconds, same_case

WITHOUT = ("eager", "torch.compile", "torch.compile reduce-overhead", "Triton")  # no C++, and no build
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
        without = [found for name in WITHOUT if (found := same_case(rows, row, name))]
        staged = [found for name in unique(rows, "name") if name.startswith("stage ")
                  if name != "stage 1" and (found := same_case(rows, row, name))]  # fmt: skip
        lines.append([size_of(row), row["pass"], *compared(without, staged, lambda row: row["ratio"])])
    return f"{headline(result, device)}\n\n{table(['size', 'pass'], lines)}"


def pointwise() -> str:
    """The pointwise part alone, for each recorded GPU."""
    parts = []
    for result in (result for result in results.recorded() if result.get("kernels")):
        lines = []
        for row in (row for row in result["kernels"] if row["name"] == "eager"):
            same = [other for other in result["kernels"] if all(other[f] == row[f] for f in ("B", "S", "pass"))]
            without = [other for other in same if other["stage"] is None]
            staged = [other for other in same if other["stage"] is not None]
            facts = [f"B{row['B']} S{row['S']}", row["pass"]]
            lines.append([*facts, *compared(without, staged, lambda row: row["median"])])
        parts.append(f"{headline(result, 'cuda')}\n\n{table(['size', 'pass'], lines)}")
    return "\n\n".join(parts) if parts else "Nothing recorded yet."


def compared(without: Sequence[dict], staged: Sequence[dict], time: Callable[[dict], float]) -> list[str]:
    """Who is fastest without C++ and with it, how fast, and the ratio of the two."""
    found, mine = min(without, key=time), min(staged, key=time)
    return [found["name"], microseconds(found), mine["name"], microseconds(mine), f"{time(found) / time(mine):.2f}"]


def table(facts: list[str], lines: list[list[str]]) -> str:
    header = [*facts, "fastest without C++", "us", "fastest stage", "us", "gain"]
    return markdown(header, lines, left=3)


def headline(result: dict, device: str) -> str:
    """Where and when it was measured."""
    torch = result["versions"]["torch"].partition("+")[0]
    return (
        f"**{device_name(result, device)}**, {device.upper()} tensors, float32, torch {torch}, {result['date'][:10]}"
    )
