"""The packages of common/ as a diagram: the layers that `make lint` enforces, and the path of `make stage-3`.

`python -m common.figures.diagrams.packages_diagram` writes docs/pictures/packages.svg.
"""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ...paths import ROOT
from .cell_diagram import INK, PANEL, PICTURES, POINTWISE, QUIET, write_svg

ROW, BOX, GAP, LEFT, WIDTH = 0.92, 0.7, 0.14, 0.15, 13.1  # inches
# What each package holds, in a few words.
HOLDS = {
    "__main__": "python -m common",
    "studies": "for maintainers: a folder for each, with recorder, table, chart and command",
    "commands": "table of commands, tour, stage, diff",
    "lab": "make start, make lab: the notebooks for a reader",
    "pages": "tables, report, syllabus, notebooks",
    "figures": "plots, heat maps, diagrams",
    "new": "make new",
    "setup": "doctor, install",
    "inline": "CUDA in notebooks",
    "workbench": "notebooks build",
    "check": "the harness",
    "measure": "the benchmark",
    "exercises": "judge, runner, grading",
    "gpu_tools": "ncu, sanitizer",
    "deploy": "stage 8's program",
    "build": "targets, library, modules, nvcc, host",
    "sequence": "cells, reference loop, cases",
    "cell": "reference, cases",
    "results": "recorded files, rows",
    "stages": "the table",
    "versions": "compared as numbers",
    "study": "finds studies",
    "console": "steps, tables",
    "pip": "runs pip",
    "key": "what a result depends on",
    "paths": "root, build/",
    "errors": "UserError",
    "command": "name, arguments",
    "emulator": "a tool of its own: rewrite, runtime (C++), toolchain, counts, mistakes",
}
# The packages that `make stage-3` passes, in order, and what each does there.
ROUTE = {
    "__main__": "finds the command",
    "commands": "run_stage(3)",
    "stages": "the row of stage 3",
    "build": "builds csrc/ for the best target",
    "emulator": "compiles it for the CPU",
    "check": "calls lltm(...) in many cases",
    "cell": "compares with the reference",
    "measure": "times it against eager",
    "results": "shows recorded times",
}


def layers(path: Path = ROOT / "pyproject.toml") -> list[list[str]]:
    """The packages from the top down, those of a layer together, as import-linter reads them."""
    listed = re.search(r"^layers = \[(.*?)^\]", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    return [layer.split(" | ") for layer in re.findall(r'"(.+?)"', listed)]


def packages() -> Figure:
    """A row for each layer; an import goes downwards only. Numbered: the way of `make stage-3`."""
    rows = layers()
    height = ROW * len(rows) + 0.45
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, height))
    axes.set_axis_off()
    for k, row in enumerate(rows):
        _row(axes, row, height - (k + 1) * ROW)
    _text(axes, LEFT, 0.22, "A package imports what is below it, never another of its row. Numbers: make stage-3.")
    return figure


def _row(axes: Axes, row: list[str], y: float) -> None:
    """The boxes of a layer, side by side, as wide as their text."""
    words = [max(len(HOLDS[name]), len(ROUTE.get(name, "")) + 3, len(name) + 2) + 2 for name in row]
    free = WIDTH - 2 * LEFT - GAP * (len(row) - 1)
    x = LEFT
    for name, count in zip(row, words, strict=True):
        width = free * count / sum(words)
        _package(axes, name, x, y, width)
        x += width + GAP


def _package(axes: Axes, name: str, x: float, y: float, width: float) -> None:
    on_route = name in ROUTE
    shape = FancyBboxPatch((x, y), width, BOX, boxstyle="round,pad=0,rounding_size=0.06")
    shape.set(facecolor=POINTWISE if on_route else PANEL, edgecolor=INK if on_route else "none", zorder=2)
    axes.add_patch(shape)
    _text(axes, x + 0.1, y + BOX - 0.17, name, size=10.5, weight="bold")
    _text(axes, x + 0.1, y + BOX / 2 - 0.02, HOLDS[name], size=8, colour=QUIET)
    if on_route:
        number = list(ROUTE).index(name) + 1
        _text(axes, x + 0.1, y + 0.13, f"{number}. {ROUTE[name]}", size=8)


def _text(
    axes: Axes, x: float, y: float, text: str, size: float = 9, colour: str = INK, weight: str = "normal"
) -> None:
    axes.text(x, y, text, size=size, color=colour, weight=weight, va="center", family="DejaVu Sans Mono", zorder=4)


def write_diagram(folder: Path = PICTURES) -> Path:
    """Writes `packages.svg`; returns its path."""
    return write_svg(packages(), folder / "packages.svg")


if __name__ == "__main__":
    print(write_diagram().relative_to(ROOT))
