"""Plots of measurements: each function takes one or more results (see results/records.py) and returns a Figure.

An implementation has the same colour in every plot, and its name stands beside its mark, so no plot needs its colours
to be read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

from ..errors import UserError
from ..results.formatting import GRADS_LABELS, PASSES
from ..results.records import THIS_MACHINE
from ..results.rows import CUDA_GRAPH, device_name, gb_per_second, select, share_of_copy, size_label, unique

# Okabe and Ito's palette, which colour-blind readers can distinguish; eager, the baseline, is grey.
INK, GRID = "#1a1a1a", "#dddddd"
BLUE, VERMILION, SKY, GREEN, PURPLE, ORANGE, YELLOW = (
    "#0072b2", "#d55e00", "#56b4e9", "#009e73", "#cc79a7", "#e69f00", "#f0e442",
)  # fmt: skip
BROWN, OLIVE = "#7a4a1e", "#8a8a00"
COLOURS = {
    "eager": "#8c8c8c",
    "torch.compile": ORANGE,
    "torch.compile reduce-overhead": YELLOW,
    "torch.compile max-autotune-no-cudagraphs": OLIVE,
    "Triton": BROWN,
}
STAGE_COLOURS = (GRID, SKY, BLUE, GREEN, VERMILION, PURPLE, INK)
SIZE_MARKS = ("o", "s", "D", "^", "v", "P")
WIDTH = 10.0  # inches: the text of a notebook's column stays readable
STYLE = {
    "axes.axisbelow": True, "axes.edgecolor": INK, "axes.grid": True, "axes.grid.axis": "x",
    "axes.spines.left": False, "axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": 11,
    "figure.dpi": 100, "figure.facecolor": "white", "figure.titlesize": 12, "font.size": 10, "grid.color": GRID,
    "ytick.left": False,
}  # fmt: skip


def colour(name: str) -> str:
    """The colour of an implementation, also under a CUDA graph."""
    name = name.removeprefix(CUDA_GRAPH)
    if name in COLOURS:
        return COLOURS[name]
    return STAGE_COLOURS[int(name.removeprefix("stage ")) % len(STAGE_COLOURS)]


def ladder_position(name: str) -> tuple[int, bool]:
    """The place of an implementation on the ladder: the peers, then the stages; under a CUDA graph after without."""
    base = name.removeprefix(CUDA_GRAPH)
    place = list(COLOURS).index(base) if base in COLOURS else len(COLOURS) + int(base.removeprefix("stage "))
    return place, base != name


def require_rows(result: dict, device: str, grads: str) -> list[dict]:
    """The rows of a figure. Raises `UserError` if the result has none."""
    rows = select(result, device=device, grads=grads)
    if not rows:
        raise UserError(
            f"{result['name']}: nothing was measured on {device.upper()} tensors with gradients for {grads}"
        )
    return rows


def make_title(text: str, result: dict, rows: Sequence[dict]) -> str:
    """A title in two lines: what is shown, and where it was measured."""
    row = rows[0]
    threads = f", {row['threads']} threads" if row["threads"] else ""
    torch = result["versions"]["torch"].partition("+")[0]
    where = f"{device_name(result, row['device'])}, {row['device'].upper()} tensors{threads}, torch {torch}"
    return f"{text}: {row['dtype']} ({row['maths']}), gradients for {GRADS_LABELS[row['grads']]}\n{where}"


def label(name: str) -> str:
    """An implementation's name as an axis label."""
    return name.replace("torch.compile ", "torch.compile\n")


def panels(
    title: str, names: Sequence[str], implementations: Sequence[str], unit: str, sharex: bool = False
) -> tuple[Figure, list[Axes]]:
    """A row of empty panels under a title: a line for each implementation, the first one at the top."""
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(WIDTH, 1.8 + 0.42 * len(implementations)), layout="constrained")
        axes = figure.subplots(1, len(names), sharey=True, sharex=sharex, squeeze=False)[0]
    pyplot.close(figure)  # otherwise a notebook would show it twice
    figure.suptitle(title, x=0.01, ha="left")
    for axis, name in zip(axes, names, strict=True):
        axis.set_title(name, loc="left")
        axis.set_xlabel(unit)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_yticks(range(len(implementations)), [label(name) for name in implementations])
        axis.set_ylim(len(implementations) - 0.5, -0.5)
    return figure, list(axes)


def plot_times(result: dict, device: str = "cpu", grads: str = "all") -> Figure:
    """Time of one call by implementation, one panel for each size: forward, and on top of it the time of backward.

    Whiskers are the quartiles of forward and of forward+backward.
    """
    rows = require_rows(result, device, grads)
    names, sizes = unique(rows, "name"), unique(rows)
    figure, axes = panels(make_title("Time of one call", result, rows), sizes, names, "microseconds")
    for axis, size in zip(axes, sizes, strict=True):
        for y, name in enumerate(names):
            found = {row["pass"]: row for row in rows if row["name"] == name and size_label(row) == size}
            if len(found) < 2:
                axis.text(0, y, " not run", va="center", color=INK)
                continue
            forward, both = (found[p] for p in PASSES)
            added = max(0.0, both["median"] - forward["median"])
            style = {"color": colour(name), "height": 0.62}
            axis.barh(y, forward["median"], **style)
            bar = axis.barh(y, added, left=forward["median"], alpha=0.55, hatch="///", lw=0, **style)
            bar[0].set_edgecolor("white")
            for row in (forward, both):
                whisker = [[row["median"] - row["q1"]], [row["q3"] - row["median"]]]
                axis.errorbar(row["median"], y, xerr=whisker, color=INK, lw=1, capsize=3)
            end = max(forward["q3"], both["q3"])
            text = f" {forward['median']:,.0f} / {both['median']:,.0f}"
            axis.annotate(text, (end, y), xytext=(3, 0), textcoords="offset points", va="center", fontsize=9)
        axis.set_xlim(0, 1.45 * max(row["q3"] for row in rows if size_label(row) == size))
    kinds = [Patch(color="#666666", label="forward"), Patch(fc="#aaaaaa", hatch="///", ec="white", label="backward")]
    figure.legend(handles=kinds, loc="outside lower right", frameon=False, ncols=2)
    return figure


def plot_speedups(result: dict, device: str = "cpu", grads: str = "all") -> Figure:
    """Speed-up of each implementation against eager, one panel for each size; right of the line is faster."""
    rows = [row for row in require_rows(result, device, grads) if row["name"] != "eager"]
    names, sizes = unique(rows, "name"), unique(rows)
    title = make_title("Speed-up against eager", result, rows)
    figure, axes = panels(title, sizes, names, "times as fast as eager", sharex=True)
    for axis, size in zip(axes, sizes, strict=True):
        against_eager(axis, [row for row in rows if size_label(row) == size], names)
    figure.legend(handles=pass_marks(), loc="outside lower right", frameon=False, ncols=2)
    return figure


def against_eager(axis: Axes, rows: Sequence[dict], names: Sequence[str]) -> None:
    """Speed-ups of the implementations in `names`: hollow for forward, filled for forward+backward."""
    axis.axvline(1, color=COLOURS["eager"], lw=2)
    for row in rows:
        hollow = row["pass"] == "forward"
        y = names.index(row["name"]) + (-0.16 if hollow else 0.16)
        fill = "white" if hollow else colour(row["name"])
        axis.plot(1 / row["ratio"], y, "o", ms=9, mec=colour(row["name"]), mfc=fill, mew=2)
        side, align = (-8, "right") if row["ratio"] > 1 else (8, "left")  # away from the line
        offset = {"xytext": (side, 0), "textcoords": "offset points", "ha": align, "va": "center"}
        axis.annotate(f"{1 / row['ratio']:.2f}", (1 / row["ratio"], y), fontsize=9, **offset)
    needed = 1.25 * max(1 / row["ratio"] for row in rows)
    axis.set_xlim(0, max(1.5, needed, axis.get_xlim()[1]))  # panels may share the axis: it only ever grows


def pass_marks() -> list[Line2D]:
    """The legend of hollow and filled marks."""
    style = {"ls": "", "marker": "o", "ms": 9, "mec": "#666666", "mew": 2}
    return [Line2D([], [], mfc=c, label=p, **style) for c, p in zip(("white", "#666666"), PASSES, strict=True)]


def plot_saved_bytes(result: dict, device: str = "cpu", grads: str = "all") -> Figure:
    """The memory that a forward pass saves for backward besides inputs and outputs, one panel for each size."""
    rows = [row for row in require_rows(result, device, grads) if row["pass"] == "forward"]
    names, sizes = unique(rows, "name"), unique(rows)
    title = make_title("Saved for backward besides inputs and outputs", result, rows)
    figure, axes = panels(title, sizes, names, "KiB")
    for axis, size in zip(axes, sizes, strict=True):
        of_size = [row for row in rows if size_label(row) == size]
        most = max(row["saved_bytes"] for row in of_size)
        unit, name = (2**20, "MiB") if most >= 2**20 else (2**10, "KiB")
        for row in of_size:
            y, value = names.index(row["name"]), row["saved_bytes"] / unit
            axis.barh(y, value, color=colour(row["name"]), height=0.62)
            text = f"{value:,.1f}" if value < 10 else f"{value:,.0f}"
            axis.annotate(text, (value, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
        axis.set_xlim(0, max(1, 1.25 * most / unit))
        axis.set_xlabel(name)
    return figure


def plot_build_seconds(results: Sequence[dict]) -> Figure | None:
    """The seconds that each stage takes to build without a cache, one panel for each machine; None without builds."""
    seconds = {}
    for result in results:
        built = {row["name"]: row["build_seconds"] for row in result["rows"] if row["build_seconds"] is not None}
        if built:
            seconds[result["name"]] = built
    if not seconds:
        return None
    names = sorted({name for built in seconds.values() for name in built}, key=ladder_position)
    figure, axes = panels("Time to build, with nothing cached", list(seconds), names, "seconds", sharex=True)
    for axis, built in zip(axes, seconds.values(), strict=True):
        for name, value in built.items():
            y = names.index(name)
            axis.barh(y, value, color=colour(name), height=0.5)
            axis.annotate(f"{value:.1f}", (value, y), xytext=(4, 0), textcoords="offset points", va="center")
        axis.set_xlim(0, 1.2 * max(v for built in seconds.values() for v in built.values()))
    return figure


def plot_kernels(result: dict) -> Figure | None:
    """The speed of the stages' kernels as a share of a copy's, one panel for each size; None if none was measured."""
    rows = [row for row in result.get("kernels", []) if row["bytes"]]
    if not rows:
        return None
    names = sorted({row["name"] for row in rows}, key=ladder_position)
    sizes = list(dict.fromkeys(f"B{row['B']} S{row['S']}" for row in rows))
    torch = result["versions"]["torch"].partition("+")[0]
    title = (
        "Speed of the pointwise kernels alone, by the bytes that they have to read and write\n"
        f"{device_name(result, 'cuda')}, {rows[0]['dtype']}, torch {torch}"
    )
    figure, axes = panels(title, sizes, names, "share of a copy's speed in the same run", sharex=True)
    figure.set_size_inches(WIDTH, 1.8 + 0.75 * len(names))
    for axis, size in zip(axes, sizes, strict=True):
        axis.axvline(1, color=COLOURS["eager"], lw=2)
        for row in (row for row in rows if f"B{row['B']} S{row['S']}" == size):
            forward = row["pass"] == "forward"
            y, share = names.index(row["name"]) + (-0.19 if forward else 0.19), share_of_copy(row)
            style = {} if forward else {"alpha": 0.55, "hatch": "///", "lw": 0}
            bar = axis.barh(y, share, color=colour(row["name"]), height=0.34, **style)
            bar[0].set_edgecolor("white")
            text = f"{share:.0%}: {gb_per_second(row):,.0f} GB/s, {row['median']:,.0f} us"
            box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}
            axis.annotate(text, (0, y), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9, bbox=box)
        axis.set_xlim(0, 1.1)
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axis.xaxis.set_major_formatter(PercentFormatter(1))
    kinds = [Patch(color="#666666", label="forward"), Patch(fc="#aaaaaa", hatch="///", ec="white", label="backward")]
    kinds.append(Line2D([], [], color=COLOURS["eager"], lw=2, label="a copy"))
    figure.legend(handles=kinds, loc="outside lower right", frameon=False, ncols=3)
    return figure


def plot_machines(results: Sequence[dict], size: str = "B16 I32 S128", grads: str = "all") -> Figure:
    """Speed-up against eager at one size, one panel for each machine and device: this one and the recorded ones."""
    found = {}
    for result in results:
        for device in unique(result["rows"], "device"):
            rows = [
                r
                for r in select(result, device=device, grads=grads)
                if size_label(r) == size and r["name"] != "eager"
            ]
            if rows:
                where = f"{THIS_MACHINE}: " if result["name"] == THIS_MACHINE else ""
                threads = f", {rows[0]['threads']} threads" if rows[0]["threads"] else ""
                label = f"{where}{device_name(result, device)}, {device.upper()} tensors{threads}"
                found[label] = rows
    names = sorted({row["name"] for rows in found.values() for row in rows}, key=ladder_position)
    title = f"Speed-up against eager on each machine\n{size}, float32 (IEEE), gradients for {GRADS_LABELS[grads]}"
    labels = [textwrap.fill(label, max(16, min(28, 76 // len(found)))) for label in found]  # beside one another
    figure, axes = panels(title, labels, names, "times as fast as eager")
    for axis, rows in zip(axes, found.values(), strict=True):
        against_eager(axis, rows, names)
    figure.legend(handles=pass_marks(), loc="outside lower right", frameon=False, ncols=2)
    return figure


def plot_ladder(result: dict, device: str = "cpu", grads: str = "all") -> Figure:
    """The ladder from eager to the last stage: times as fast as eager, one mark for each size; right is faster."""
    rows = require_rows(result, device, grads)
    names, sizes = unique(rows, "name"), unique(rows)
    title = make_title("The ladder", result, rows)
    figure, axes = panels(title, PASSES, names, "times as fast as eager", sharex=True)
    marks = dict(zip(sizes, SIZE_MARKS, strict=False))
    for axis, name in zip(axes, PASSES, strict=True):
        axis.axvline(1, color=COLOURS["eager"], lw=2)
        for size, mark in marks.items():
            of_size = [row for row in rows if row["pass"] == name and size_label(row) == size]
            ys = [names.index(row["name"]) + 0.2 * (sizes.index(size) - (len(sizes) - 1) / 2) for row in of_size]
            for row, y in zip(of_size, ys, strict=True):
                axis.plot(1 / row["ratio"], y, mark, ms=8, mfc=colour(row["name"]), mec=INK, mew=0.7)
        axis.set_xlim(0, 1.1 * max(1 / row["ratio"] for row in rows))
    style = {"ls": "", "ms": 8, "mfc": "#cccccc", "mec": INK}
    handles = [Line2D([], [], marker=mark, label=size, **style) for size, mark in marks.items()]
    figure.legend(handles=handles, loc="outside lower right", frameon=False, ncols=len(sizes))
    return figure
