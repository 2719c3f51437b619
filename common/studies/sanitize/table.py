"""The record of compute-sanitizer as a table."""

from __future__ import annotations

from collections.abc import Sequence

from ... import stages
from ...results import sources
from . import STUDY
from .recorder import SANITIZER_TOOLS, SHAPE_CLASSES


def sanitizer_table() -> str:
    """The recorded outcomes as a table: a line for each stage, kernel and shape class, a column for each tool."""
    if not (record := STUDY.read_record()):
        return "Not measured yet: `make sanitize` on a machine with a GPU that lets the tools work."
    lines, notes = [], {}
    for number in dict.fromkeys(row["stage"] for row in record["rows"]):
        of_stage = [row for row in record["rows"] if row["stage"] == number]
        for kernel in dict.fromkeys(row["kernel"] for row in of_stage):
            of_kernel = [row for row in of_stage if row["kernel"] == kernel]
            for shape, (B, S) in SHAPE_CLASSES.items():
                same = [row for row in of_kernel if row["shape"] == shape]
                cells = [
                    worst_outcome([row for row in same if row["tool"] == tool], notes) for tool in SANITIZER_TOOLS
                ]
                if same:
                    lines.append([f"stage {number}", f"`{kernel}`", f"{shape} (B{B} S{S})", *cells])
    head = ["", "kernel", "shape class", *SANITIZER_TOOLS]
    table = "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])
    stale = [n for n, digest in record["sources"].items() if sources.hash_stage(stages.find_stage(int(n))) != digest]
    marked = f"\n\nStale, because the sources have changed since: stage {', '.join(stale)}." if stale else ""
    said = "".join(f"\n\n{mark}: {text}" for text, mark in notes.items())
    gpu, driver_version = record["machine"]["gpu"], record["machine"]["driver"]
    return (
        f"compute-sanitizer on {gpu}, driver {driver_version}, nvcc {record['versions']['nvcc']}, "
        f"{record['date'][:10]}; float32 and float64.\n\n{table}{said}{marked}"
    )


def worst_outcome(of_dtypes: Sequence[dict], notes: dict[str, str]) -> str:
    """The worst outcome over the dtypes; its message becomes a note below the table."""
    for outcome in ("errors", "not measured"):
        for row in of_dtypes:
            if row["outcome"] == outcome:
                mark = notes.setdefault(row["message"], f"note {len(notes) + 1}")
                return f"**{outcome}** ({mark})" if outcome == "errors" else f"{outcome} ({mark})"
    return "clean" if of_dtypes else "not measured"
