"""The recorded ablation as tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ...commands.optimisations import FOLDER, OPTIMISATIONS, describe
from ...pages.markdown import markdown_table as table
from ...paths import ROOT
from ...results.formatting import PASSES, describe_origin, format_microseconds
from ...results.rows import select, size_in_memory, size_label, unique
from . import recorder as ablation
from . import variants

TIMES_TEXT = (
    "Median times of one call in microseconds. Each row of the first table leaves out one optimisation, and the "
    "brackets say how many times as fast as the whole stage this is: below one, the optimisation helps. Each row of "
    "the second table adds one optimisation to a stage that has none, and the brackets say how many times as fast as "
    "that stage this is: above one, the optimisation helps by itself."
)
KERNELS_TEXT = (
    "Kernel times of the pointwise part alone, with the cache flushed before each call; backward includes the "
    "gradient of the bias. Brackets as above."
)
SUMMARY_TEXT = (
    "The pointwise kernels, each row without one optimisation: microseconds, and in brackets how many times as fast "
    "as the whole stage this is; below one, the optimisation helps."
)
COUNTS_TEXT = (
    "What the kernels request from global memory: bytes as the emulator counts them, requests and sectors (of 32 "
    "bytes) by the emulator and by ncu. Torch's own kernels, such as its matrix products and sums, are not counted. "
    "Variants with the same counts as the stage are left out."
)


def recorded_table() -> str:
    """All tables of the record."""
    return ablation_table(ablation.read_recorded_ablation())


def recorded_summary() -> str:
    """The summary of the record."""
    return ablation_summary(ablation.read_recorded_ablation())


def ablation_summary(record: dict) -> str:
    """What each optimisation is, the pointwise kernels without each of them, and where the rest is: for stage 6."""
    names, header, line = kernel_lines(record)
    left_out = [name for name in names if name == "all" or name.startswith("without ")]
    whole = Path(os.path.relpath(ROOT / "docs" / "results" / "ablation.md", FOLDER)).as_posix()
    parts = [
        *warn_if_stale(record),
        list_optimisations(),
        SUMMARY_TEXT,
        table(header, [line(name, "all") for name in left_out]),
        f"The whole cell, each optimisation alone, and what the kernels request from memory: [ablation]({whole}).",
    ]
    return "\n\n".join(parts)


def warn_if_stale(record: dict) -> list[str]:
    """A remark when the sources have changed since."""
    stale = record["sources"] != variants.hash_ablation()
    return ["Stale: the sources have changed since this was measured."] if stale else []


def ablation_table(record: dict) -> str:
    """All tables, and a remark when the sources have changed since."""
    parts = warn_if_stale(record)
    parts += [list_optimisations(), TIMES_TEXT] if record["rows"] else []
    parts += [cell_tables(record, device) for device in ablation.DEVICES if select(record, device=device)]
    parts += [kernel_tables(record)] if record["kernels"] else []
    parts += [counts_table(record)] if record["counts"] else []
    return "\n\n".join(parts)


def list_optimisations() -> str:
    """A list with a sentence on each optimisation."""
    return "\n".join(f"- `{optimisation}`: {describe(optimisation)}" for optimisation in OPTIMISATIONS)


def cell_tables(record: dict, device: str) -> str:
    """The cell on one device: both tables, with the bytes saved for backward."""
    rows = select(record, device=device)
    sizes = unique(rows)
    header = ["", *(f"{size}<br>{name}" for size in sizes for name in PASSES), f"saved for backward<br>{sizes[-1]}"]

    def line(name: str, reference: str) -> list[str]:
        found = {(size_label(row), row["pass"]): row for row in rows if row["name"] == name}
        others = {(size_label(row), row["pass"]): row for row in rows if row["name"] == reference}
        times = [
            format_speedup(found.get(key), others.get(key)) for key in ((size, p) for size in sizes for p in PASSES)
        ]
        return [variant_label(name), *times, size_in_memory(found.get((sizes[-1], "forward")))]

    return f"{describe_origin(record, rows)}\n\n{split_tables(header, unique(rows, 'name'), line)}"


def kernel_tables(record: dict) -> str:
    """The pointwise kernels alone."""
    names, header, line = kernel_lines(record)
    return f"{KERNELS_TEXT}\n\n{split_tables(header, names, line)}"


def kernel_lines(record: dict) -> tuple[list[str], list[str], Callable[[str, str], list[str]]]:
    """The variants of the pointwise kernels, the columns of their tables, and what writes a line."""
    rows = record["kernels"]
    columns = list(dict.fromkeys((row["B"], row["S"], row["pass"]) for row in rows))
    header = ["", *(f"B{B} S{S}<br>{name}" for B, S, name in columns)]

    def line(name: str, reference: str) -> list[str]:
        found = {(row["name"], row["B"], row["S"], row["pass"]): row for row in rows}
        return [
            variant_label(name),
            *(format_speedup(found.get((name, *c)), found.get((reference, *c))) for c in columns),
        ]

    return unique(rows, "name"), header, line


def split_tables(header: Sequence[str], names: Sequence[str], line: Callable[[str, str], list[str]]) -> str:
    """Two tables: the stage without each optimisation, and the stage with each of them alone."""
    left_out = [name for name in names if name in ("eager", "all") or name.startswith("without ")]
    alone = [name for name in names if name == "none" or name.startswith("only ")]
    first = table(header, [line(name, "all") for name in left_out])
    return f"{first}\n\n{table(header, [line(name, 'none') for name in alone])}"


def format_speedup(row: dict | None, reference: dict | None) -> str:
    """A median, and how many times as fast as another it is."""
    if row is None or reference is None:
        return "not run"
    return f"{format_microseconds(row)} ({speedup(row, reference):.2f})"


def speedup(row: dict, reference: dict) -> float:
    """How many times as fast as another a row is; by their ratios to eager, paired by round, where there are any."""
    key = "ratio" if "ratio" in row else "median"
    return reference[key] / row[key]


def variant_label(name: str) -> str:
    """A variant as tables call it."""
    names = {"all": "the stage", "none": "no optimisation", "eager": "eager"}
    if name in names:
        return names[name]
    kind, _, optimisation = name.partition(" ")
    return f"{kind} `{optimisation}`"


def counts_table(record: dict) -> str:
    """The emulator's counts beside ncu's: loads and stores of global memory of each launch, added up."""
    lines = []
    for row in sorted(record["counts"], key=lambda row: (row["what"], row["pass"] != "forward", row["kernel"])):
        ours, theirs = row["emulator"], row["ncu"]
        if row["name"] != "all" and any(ours == other["emulator"] for other in stage_counts_of(record, row)):
            continue
        numbers = [f"{sum_spaces(ours, 'bytes') / 1024:,.1f}"]
        for what in ("requests", "sectors"):
            numbers += [
                f"{sum_spaces(ours, what):,}",
                "not measured" if theirs is None else f"{sum_spaces(theirs, what):,}",
            ]
        lines.append([f"`{row['kernel']}`", row["what"], row["pass"], variant_label(row["name"]), *numbers])
    header = ["kernel", "of", "pass", "", "KiB", "requests", "by ncu", "sectors", "by ncu"]
    refused = next((row["refused"] for row in record["counts"] if row["refused"]), None)
    return f"{COUNTS_TEXT}{f' Not measured: {refused}.' if refused else ''}\n\n{table(header, lines, left=4)}"


def stage_counts_of(record: dict, row: dict) -> list[dict]:
    """The stage's own counts of the same kernel in the same call."""
    same = {key: row[key] for key in ("what", "pass", "kernel")}
    return select({"rows": record["counts"]}, name="all", **same)


def sum_spaces(found: dict, what: str) -> int:
    """A number of both ways of using global memory."""
    return sum(found.get(space, {}).get(what, 0) for space in ("global load", "global store"))
