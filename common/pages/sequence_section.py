"""The part of the report that shows whole sequences: a table for each configuration, with memory beside time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..results.formatting import PASSES, marked_name
from ..results.rows import device_name, size_in_memory
from .html import html_heading, html_table

FACTS = ("cell", "T", "B", "I", "S", "dtype", "maths", "device")


def sequence_section(result: dict) -> Iterator[str]:
    """A table for each configuration that was measured; nothing if there is none."""
    rows = result.get("sequences", [])
    if not rows:
        return
    yield html_heading("Whole sequences")
    yield "<p>Milliseconds of one call, and in brackets how many times as fast as the first line this is.</p>"
    for group in by_configuration(rows):
        yield sequence_table(group, result)


def by_configuration(rows: Sequence[dict]) -> list[list[dict]]:
    """The rows in groups of one configuration, in order of appearance."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault(tuple(row[fact] for fact in FACTS), []).append(row)
    return list(groups.values())


def sequence_table(rows: Sequence[dict], result: dict) -> str:
    """A line for each implementation: both passes, the memory that forward saves, and the peak of a training step."""
    first, lines = rows[0], []
    for row in rows:
        if row["pass"] != "forward":
            continue
        both = next(other for other in rows if other["name"] == row["name"] and other["pass"] != "forward")
        cells = [f"{one['median'] / 1e3:,.3f} ({1 / one['ratio']:.2f})" for one in (row, both)]
        peak = f"{row['peak_bytes'] / 2**20:,.1f} MiB"
        lines.append([marked_name(row, result), *cells, size_in_memory(row), peak])
    size = " ".join(f"{name}{first[name]}" for name in ("T", "B", "I", "S"))
    where = f"{first['device'].upper()} tensors, {device_name(result, first['device'])}"
    caption = f"{first['cell'].upper()}, {size}, {describe_numbers(first)}, {where}"
    return html_table(["", *PASSES, "saved for backward", "peak"], lines, caption=caption)


def describe_numbers(row: dict) -> str:
    """The dtype of a row, and for float32 how products are computed."""
    return f"{row['dtype']} ({row['maths']})" if row["dtype"] == "float32" else row["dtype"]
