"""The times that PyTorch's tutorial published for this cell, beside those recorded here: times as fast as Python."""

from __future__ import annotations

from ...results import records
from ...results.formatting import PASSES
from ...results.rows import select, size_label
from ..markdown import markdown_table

SIZE = "B16 I32 S128"
# Microseconds of forward and backward in "Custom C++ and CUDA Extensions" (pytorch/tutorials, advanced_source/
# cpp_extension.rst), by device, as the page gives them for its Python, C++ and CUDA versions of the cell.
PUBLISHED = {
    "cpu": {"Python": (506.480, 444.694), "C++": (349.335, 443.523)},
    "cuda": {"Python": (187.719, 410.815), "C++": (149.802, 393.458), "CUDA kernels": (129.431, 304.641)},
}
STAGES = {"C++": "stage 2", "CUDA kernels": "stage 3"}


def published_table() -> str:
    """How many times as fast as the Python version or eager each version is: there, and in each record."""
    recorded = [result for result in records.read_recorded() if result["rows"]]
    header = ["version", "tensors", "tutorial", *(result["name"] for result in recorded)]
    lines = []
    for device, times in PUBLISHED.items():
        for version, stage in STAGES.items():
            if version in times:
                there = format_passes(*published_speedups(times, version))
                here = [recorded_speedups(result, device, stage) for result in recorded]
                lines.append([f"{version} ({stage})", device.upper(), there, *here])
    return markdown_table(header, lines, left=2)


def published_speedups(times: dict[str, tuple[float, float]], version: str) -> tuple[float, float]:
    """How many times as fast as the Python version a version is: forward, and forward and backward together."""
    (python, python_backward), (forward, backward) = times["Python"], times[version]
    return python / forward, (python + python_backward) / (forward + backward)


def recorded_speedups(result: dict, device: str, stage: str) -> str:
    """The same of a stage and eager in a record; a dash if it was not measured on that device."""
    rows = [row for row in select(result, device=device, grads="all", name=stage) if size_label(row) == SIZE]
    by_pass = {row["pass"]: 1 / row["ratio"] for row in rows}
    return format_passes(*(by_pass[name] for name in PASSES)) if rows else "–"


def format_passes(forward: float, both: float) -> str:
    """Both numbers as one cell."""
    return f"{forward:.2f} / {both:.2f}"
