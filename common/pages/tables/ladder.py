"""The recorded times of every stage beside its peers, as tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ... import stages
from ...figures.ladder_chart import NOT_MEASURED
from ...paths import ROOT
from ...results import records
from ...results.formatting import (
    GRADS_LABELS,
    PASSES,
    describe_origin,
    find_same_case,
    find_strongest_peer,
    format_microseconds,
    format_time_and_speedup,
    marked_name,
)
from ...results.rows import (
    EAGER,
    headline_names,
    select,
    size_in_memory,
    size_label,
    speedup,
    unique,
)
from ...results.sources import is_stale
from ...stages import Stage
from ..markdown import markdown_table

NOTHING = (
    "Nothing recorded yet: `make bench` measures a machine, and docs/results/README.md says how to add its file."
)
LADDER = (
    "Microseconds of one call. The brackets say how many times as fast as eager in the same run this is: above one "
    "is faster."
)
AGAINST = (
    "Microseconds of one call, and how many times as fast the stage is as eager and as the *strongest peer*, the "
    "fastest implementation without C++ in the same run: above one is faster."
)
# So that the short table of a GPU has eight lines. The chart and docs/results/ have all of them.
LEFT_OUT = ("torch.compile", "stage 4")  # the former in all of its modes
STALE = "Stale: the sources have changed since this was measured.\n\n"
NO_DIFFERENCE = 0.03  # a time this close to the other's, as a share of it, is no difference


def stages_table(page: Path) -> str:
    """The table of stages; those that are not written yet are said to be."""
    rows = []
    for stage in stages.STAGES:
        link = Path(os.path.relpath(stage.folder, page.parent)).as_posix()
        title = f"[{stage.title}]({link})" if stage.is_here else stage.title
        state = f"`make stage-{stage.number}`" if stage.is_here else "not here yet"
        rows.append([str(stage.number), title, stage.kind, ", ".join(stage.targets), state])
    return markdown_table(["stage", "what", "kind", "runs on", ""], rows, left=5)


def ladder_table(page: Path) -> str:
    """The ladder in short: the headline implementations, on one recorded machine, with a GPU if there is one.

    On a GPU, those in `LEFT_OUT` are not shown.
    """
    recorded = records.read_recorded()
    if not recorded:
        return NOTHING
    result = next((one for one in recorded if select(one, device="cuda", grads="all")), recorded[0])
    device = unique(result["rows"], "device")[-1]
    names = headline_names(select(result, device=device, grads="all"))
    if device == "cuda":
        names = [name for name in names if not name.startswith(LEFT_OUT)]
    return f"{LADDER}\n\n{device_ladder(result, device, 'all', names)}"


def all_ladders() -> str:
    """For each recorded machine, device and kind of gradients a table with every implementation."""
    parts = [
        device_ladder(result, device, kind)
        for result in records.read_recorded()
        for device in unique(result["rows"], "device")
        for kind in GRADS_LABELS
        if select(result, device=device, grads=kind)
    ]
    return "\n\n".join([LADDER, *parts])


def device_ladder(result: dict, device: str, grads: str, names: Sequence[str] = ()) -> str:
    """The ladder of one machine: microseconds, in brackets how many times as fast as eager in the same run.

    All implementations are shown, with what they save for backward at the largest size; or only `names`, without it.
    """
    rows = select(result, device=device, grads=grads)
    sizes = unique(rows)
    saved = [] if names else [f"saved for backward<br>{sizes[-1]}"]
    header = ["", *(f"{size}<br>{name}" for size in sizes for name in PASSES), *saved]
    lines = []
    for name in names or unique(rows, "name"):
        found = {(size_label(row), row["pass"]): row for row in rows if row["name"] == name}
        cells = [format_time_and_speedup(found.get((size, p))) for size in sizes for p in PASSES]
        if saved:
            cells.append(size_in_memory(found.get((sizes[-1], "forward"))))
        if found:
            lines.append([marked_name(next(iter(found.values())), result), *cells])
        else:
            lines.append([name, *[NOT_MEASURED] * len(cells)])
    return f"{describe_origin(result, rows)}, gradients for {GRADS_LABELS[grads]}\n\n{markdown_table(header, lines)}"


def stage_table(stage: Stage, page: Path) -> str:
    """A table of the stage on one machine, and where it is slower on every machine, in words."""
    recorded = [
        (result, select(result, device=device))
        for result in records.read_recorded()
        for device in unique(select(result, stage=stage.number), "device")
    ]
    if not recorded:
        return NOTHING
    parts = [describe_origin(*one) + "\n\n" + summarise_comparison(stage, *one) for one in recorded]
    origin, summary = parts[0].split("\n\n", 1)
    table = compare_with_baselines(stage, recorded[0][1])
    others = Path(os.path.relpath(ROOT / "docs" / "results" / "README.md", page.parent)).as_posix()
    more = f"Every size, machine and implementation: [recorded results]({others})."
    return "\n\n".join([AGAINST, origin, table, summary, *parts[1:], more])


def ladder_picture(page: Path) -> str:
    """The ladder's chart, for pages that are light or dark."""
    folder = Path(os.path.relpath(ROOT / "docs" / "pictures", page.parent)).as_posix()
    return (
        "<picture>\n"
        f'  <source media="(prefers-color-scheme: dark)" srcset="{folder}/ladder-dark.svg">\n'
        f'  <img alt="How many times as fast as eager PyTorch each stage is" src="{folder}/ladder-light.svg">\n'
        "</picture>"
    )


def compare_with_baselines(stage: Stage, rows: list[dict]) -> str:
    """A line for each size and pass, with gradients for all inputs: the stage beside eager and its strongest peer."""
    rows = [row for row in rows if row["grads"] == "all"]
    lines = []
    for row in (row for row in rows if row["stage"] == stage.number):
        eager, peer = find_same_case(rows, row, EAGER), find_strongest_peer(rows, row)
        times = [format_microseconds(eager), f"{peer['name']} {format_microseconds(peer)}", format_microseconds(row)]
        lines.append(
            [size_label(row), row["pass"], *times, *(f"{speedup(row, other):.2f}" for other in (eager, peer))]
        )
    header = [
        "size",
        "pass",
        "eager",
        "strongest peer",
        f"stage {stage.number}",
        "times as fast as eager",
        "as the peer",
    ]
    return markdown_table(header, lines, left=2)


def summarise_comparison(stage: Stage, result: dict, rows: list[dict]) -> str:
    """Where the stage is slower and faster than each peer, and what it keeps in memory, a sentence each."""
    mine = [row for row in rows if row["stage"] == stage.number]
    stale = any(is_stale(row, result) for row in mine)
    lines = [*compare_times(mine, rows), *compare_memory(mine, rows)]
    return (STALE if stale else "") + "\n".join(lines)


def compare_times(mine: list[dict], rows: list[dict]) -> Iterator[str]:
    """For each peer, in how many cases the stage is faster and slower."""
    for peer in (name for name in unique(rows, "name") if not name.startswith("stage ")):
        pairs = [(row, other) for row in mine if (other := find_same_case(rows, row, peer))]
        slower = [(row, other) for row, other in pairs if speedup(other, row) > 1 + NO_DIFFERENCE]
        faster = [row for row, other in pairs if speedup(other, row) < 1 - NO_DIFFERENCE]
        alike = len(pairs) - len(slower) - len(faster)
        lost = "never slower"
        if slower:
            places = ", ".join(unique([row for row, _ in slower]))
            least = min(speedup(*pair) for pair in slower)
            lost = f"**slower in {len(slower)}, at worst {least:.2f} times as fast ({places})**"
        yield f"- Of {len(pairs)} cases against {peer}: faster in {len(faster)}, about the same in {alike}, {lost}."


def compare_memory(mine: list[dict], rows: list[dict]) -> Iterator[str]:
    """What the stage keeps for backward at the largest size, beside eager."""
    row = mine[-1]
    if eager := find_same_case(rows, row, "eager"):
        yield (
            f"- Saved for backward at {size_label(row)}, in addition to inputs and outputs: {size_in_memory(row)}; "
            f"by eager {size_in_memory(eager)}."
        )


def results_table(page: Path) -> str:
    """The recorded files, and all their ladders."""
    recorded = records.read_recorded()
    if not recorded:
        return NOTHING
    lines = []
    for result in recorded:
        machine, versions = result["machine"], result["versions"]
        hardware = f"{machine['gpu'] or 'no GPU'}; {machine['cpu']}, {machine['cores']} cores"
        link = f"[{result['name']}.json]({result['name']}.json)"
        lines.append([link, hardware, versions["torch"], versions["python"], result["date"][:10]])
    return markdown_table(["file", "machine", "torch", "Python", "date"], lines, left=5) + "\n\n" + all_ladders()
