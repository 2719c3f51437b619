"""The recorded ablation as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import ablation, variants
from .results import select, size_in_memory, size_of, unique
from .tables import PASSES, microseconds, place
from .tables import markdown as table

TIMES = (
    "Microseconds of one call, medians. The first table leaves out one idea at a time; in brackets the multiple of "
    "the whole stage's time: above one, the idea is worth something there. The second adds one idea to a stage that "
    "has none; in brackets the multiple of that stage's time: below one, the idea is worth something by itself."
)
KERNELS = (
    "Kernel time of the pointwise part alone, the cache flushed before each call, backward with the bias's gradient; "
    "brackets as above."
)
COUNTS = (
    "What kernels ask of global memory: bytes as the emulator counts them, requests and sectors (of 32 bytes) by "
    "the emulator and by ncu. Kernels of torch's, such as its products and sums, are not counted, and what asks for "
    "the same as the stage is left out."
)


def markdown(record: dict) -> str:
    """All tables, and a remark when the sources have changed since."""
    stale = record["sources"] != variants.source_hash()
    parts = ["Stale: the sources have changed since this was measured."] if stale else []
    parts += [ideas(), TIMES] if record["rows"] else []
    parts += [cells(record, device) for device in ablation.DEVICES if select(record, device=device)]
    parts += [kernels(record)] if record["kernels"] else []
    parts += [counts(record)] if record["counts"] else []
    return "\n\n".join(parts)


def ideas() -> str:
    """What each idea is."""
    return "\n".join(f"- `{idea}`: {variants.meaning(idea)}" for idea in variants.IDEAS)


def cells(record: dict, device: str) -> str:
    """The cell on one device: both tables, with the bytes saved for backward."""
    rows = select(record, device=device)
    sizes = unique(rows)
    header = ["", *(f"{size}<br>{name}" for size in sizes for name in PASSES), f"saved for backward<br>{sizes[-1]}"]

    def line(name: str, reference: str) -> list[str]:
        found = {(size_of(row), row["pass"]): row for row in rows if row["name"] == name}
        others = {(size_of(row), row["pass"]): row for row in rows if row["name"] == reference}
        times = [timed(found.get(key), others.get(key)) for key in ((size, p) for size in sizes for p in PASSES)]
        return [shown(name), *times, size_in_memory(found.get((sizes[-1], "forward")))]

    return f"{place(record, rows)}\n\n{both(header, unique(rows, 'name'), line)}"


def kernels(record: dict) -> str:
    """The pointwise kernels alone."""
    rows = record["kernels"]
    columns = list(dict.fromkeys((row["B"], row["S"], row["pass"]) for row in rows))
    header = ["", *(f"B{B} S{S}<br>{name}" for B, S, name in columns)]

    def line(name: str, reference: str) -> list[str]:
        found = {(row["name"], row["B"], row["S"], row["pass"]): row for row in rows}
        return [shown(name), *(timed(found.get((name, *c)), found.get((reference, *c))) for c in columns)]

    return f"{KERNELS}\n\n{both(header, unique(rows, 'name'), line)}"


def both(header: Sequence[str], names: Sequence[str], line: Callable[[str, str], list[str]]) -> str:
    """Two tables: the stage and what it is without an idea; what is left without any, and with one alone."""
    left_out = [name for name in names if name in ("eager", "all") or name.startswith("without ")]
    alone = [name for name in names if name == "none" or name.startswith("only ")]
    first = table(header, [line(name, "all") for name in left_out])
    return f"{first}\n\n{table(header, [line(name, 'none') for name in alone])}"


def timed(row: dict | None, reference: dict | None) -> str:
    """A median with its multiple of another's."""
    if row is None or reference is None:
        return "not run"
    return f"{microseconds(row)} ({multiple(row, reference):.2f})"


def multiple(row: dict, reference: dict) -> float:
    """A time as a multiple of another's; by their ratios to eager, which are paired by round, where there are any."""
    key = "ratio" if "ratio" in row else "median"
    return row[key] / reference[key]


def shown(name: str) -> str:
    """A variant as tables call it."""
    names = {"all": "the stage", "none": "no idea", "eager": "eager"}
    if name in names:
        return names[name]
    kind, _, idea = name.partition(" ")
    return f"{kind} `{idea}`"


def counts(record: dict) -> str:
    """The emulator's counts beside ncu's: loads and stores of global memory of each launch, added up."""
    lines = []
    for row in sorted(record["counts"], key=lambda row: (row["what"], row["pass"] != "forward", row["kernel"])):
        ours, theirs = row["emulator"], row["ncu"]
        if row["name"] != "all" and any(ours == other["emulator"] for other in of_the_stage(record, row)):
            continue
        numbers = [f"{total(ours, 'bytes') / 1024:,.1f}"]
        for what in ("requests", "sectors"):
            numbers += [f"{total(ours, what):,}", "not measured" if theirs is None else f"{total(theirs, what):,}"]
        lines.append([f"`{row['kernel']}`", row["what"], row["pass"], shown(row["name"]), *numbers])
    header = ["kernel", "of", "pass", "", "KiB", "requests", "by ncu", "sectors", "by ncu"]
    refused = next((row["refused"] for row in record["counts"] if row["refused"]), None)
    return f"{COUNTS}{f' Not measured: {refused}.' if refused else ''}\n\n{table(header, lines, left=4)}"


def of_the_stage(record: dict, row: dict) -> list[dict]:
    """The stage's own counts of the same kernel in the same call."""
    same = {key: row[key] for key in ("what", "pass", "kernel")}
    return select({"rows": record["counts"]}, name="all", **same)


def total(found: dict, what: str) -> int:
    """A number of both ways of using global memory."""
    return sum(found.get(space, {}).get(what, 0) for space in ("global load", "global store"))
