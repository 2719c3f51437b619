"""The recorded times of the pointwise kernels alone, as tables."""

from __future__ import annotations

from pathlib import Path

from ...results import records
from ...results.rows import device_name, kernel_cells
from ...results.sources import is_stale
from ..markdown import markdown_table
from .ladder import NOTHING

KERNELS_TEXT = (
    "Kernel time of the pointwise part alone (median and quartiles), with the cache flushed before each call. GB/s "
    "counts the bytes that the stage's kernel has to read and write. The next column divides this speed by the speed "
    "of a copy in the same run. A kernel that reads more than it writes can reach a little more than 100 %. "
    "Registers and occupancy are given where one kernel does all the work."
)


def kernels_table(page: Path) -> str:
    """The pointwise kernels alone on each recorded GPU: time, speed, registers and occupancy."""
    parts = [gpu_table(result) for result in records.read_recorded() if result.get("kernels")]
    return "\n\n".join([KERNELS_TEXT, *parts]) if parts else NOTHING


def gpu_table(result: dict) -> str:
    """The kernels of one machine, a line for each implementation, size and pass."""
    header = ["", "size", "pass", "kernels", "microseconds", "GB/s", "of a copy's", "registers", "occupancy"]
    lines = []
    for row in sorted(result["kernels"], key=lambda row: (-row["B"] * row["S"], row["pass"] != "forward")):
        cells = [marked_kernel_name(row, result), f"B{row['B']} S{row['S']}", row["pass"], *kernel_cells(row)]
        facts = ["" if row["registers"] is None else str(row["registers"])]
        facts.append("" if row["occupancy"] is None else f"{row['occupancy']:.0%}")
        lines.append(cells + facts)
    row = result["kernels"][0]
    copy, total = (
        " and ".join(sorted({f"{row[f'{kind}_gb_per_second']:,.0f}" for row in result["kernels"]}))
        for kind in ("copy", "sum")
    )
    torch = result["versions"]["torch"].partition("+")[0]
    return (
        f"**{device_name(result, 'cuda')}**, {row['dtype']}, torch {torch}, {result['date'][:10]}; "
        f"in the same run a copy: {copy} GB/s, a sum of two tensors into a third: {total} GB/s\n\n"
        f"{markdown_table(header, lines, left=3)}"
    )


def marked_kernel_name(row: dict, result: dict) -> str:
    """An implementation's name, marked when the sources of its kernels have changed since."""
    stale = row["stage"] is not None and is_stale(row, result)
    return f"{row['name']} (stale: sources changed since)" if stale else row["name"]
