"""How the emulator works, as a diagram.

`python -m common.figures.diagrams.emulator_diagram` writes docs/pictures/emulator.svg.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ...paths import ROOT
from .cell_diagram import CELL, INK, MATRIX, PANEL, PICTURES, POINTWISE, QUIET, write_svg

WIDTH, HEIGHT = 13.1, 6.3  # inches
BUILD_ROW, THREADS_ROW = 5.45, 2.85
WAITS, DONE = "#f2a07b", "#b9dcc4"


def draw_emulator() -> Figure:
    """Above, the build from a stage's sources; below, the path of one load through a launch."""
    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, HEIGHT))
    axes.set_axis_off()
    _panel(axes, (0.15, 4.72, 12.8, 1.43), "built once")
    _build(axes)
    _panel(axes, (0.15, 0.15, 12.8, 4.3), "each launch")
    _block(axes)
    _access(axes)
    _report(axes)
    return figure


def _build(axes: Axes) -> None:
    y = BUILD_ROW
    _box(axes, (0.35, y - 0.4, 1.6, 0.8), "lltm_kernel.cu\nlltm.cpp", "white")
    _box(axes, (3.75, y - 0.4, 1.6, 0.8), "a copy, line\nfor line", "white")
    built = "_C.so: your code, a call for every\nload and store, and our runtime"
    _box(axes, (8.1, y - 0.4, 4.65, 0.8), built, MATRIX)
    _arrow(axes, (1.95, y), (3.75, y), "rewrite/", "<<<>>>, __shared__,\nnames of tensors")
    _arrow(axes, (5.35, y), (8.1, y), "g++ -fsanitize=thread", "without the sanitizer's\nown library")


def _block(axes: Axes) -> None:
    """A block of eight threads: four have not begun, three wait at a barrier, one runs."""
    _text(axes, 0.35, 4.08, "blocks and threads, one after another", quiet=True)
    for place, thread in enumerate((4, 5, 6, 7, 0, 1, 2, 3)):
        colour = WAITS if thread < 3 else POINTWISE if thread == 3 else "white"
        _box(axes, (0.35 + 0.36 * place, THREADS_ROW, 0.32, 0.6), str(thread), colour)
        if thread < 3:
            _box(axes, (0.38 + 0.36 * place, THREADS_ROW - 0.6, 0.26, 0.5), "", WAITS)
    _text(axes, 0.35, 3.62, "to come", quiet=True)
    _text(axes, 1.79, 3.62, "wait", colour=CELL)
    _text(axes, 2.87, 3.62, "runs")
    _text(axes, 0.35, 2.5, "waiting threads\nkeep their stack", quiet=True)
    _text(axes, 0.35, 1.75, "EMULATOR_SEED\nshuffles the order", quiet=True)
    _box(axes, (0.35, 0.4, 3.0, 0.85), "barriers, warp functions,\nlaunch limits", DONE)
    _arrow(axes, (2.28, THREADS_ROW - 0.6), (2.28, 1.25))


def _access(axes: Axes) -> None:
    """Draws one load, from its source line to what the emulator knows about its address."""
    _box(axes, (4.05, THREADS_ROW, 2.6, 0.6), "row[t] = x[t];", POINTWISE)
    _arrow(axes, (3.19, THREADS_ROW + 0.3), (4.05, THREADS_ROW + 0.3))
    _text(axes, 4.05, 3.62, "block (2, 0, 0), thread (3, 0, 0)", quiet=True)
    _arrow(axes, (4.4, THREADS_ROW), (4.4, 2.2))
    _text(axes, 4.5, 2.54, "__tsan_read4(&x[t])", quiet=True)
    _box(axes, (4.05, 1.4, 2.6, 0.8), "hook: which thread,\nwhich address?", MATRIX)
    _text(axes, 7.55, 4.08, "what is known about the address", quiet=True)
    _box(axes, (7.55, 3.05, 2.35, 0.85), "arena of the block:\nits __shared__", "white")
    _box(axes, (7.55, 2.0, 2.35, 0.85), "tensor x: alive?\nsizes, strides", "white")
    _box(axes, (7.55, 0.95, 2.35, 0.85), "shadow: last writes\nand reads of it", "white")
    for y in (3.47, 2.42, 1.37):
        _arrow(axes, (6.65, 1.8), (7.55, y))


def _report(axes: Axes) -> None:
    """Draws the checks and the report."""
    for y, name, colour in (
        (3.3, "counts, pictures", MATRIX),
        (2.45, "memory", DONE),
        (1.75, "initialisation", DONE),
        (1.05, "races", DONE),
    ):
        _box(axes, (10.65, y, 2.1, 0.55), name, colour)
    for y_from, y_to in ((3.47, 3.57), (2.42, 3.57), (3.47, 2.72), (2.42, 2.72), (1.37, 2.02), (1.37, 1.32)):
        _arrow(axes, (9.9, y_from), (10.65, y_to))
    _box(axes, (4.05, 0.4, 8.7, 0.4), "report: one entry for each cause; errors are raised at the launch", MATRIX)
    _arrow(axes, (3.35, 0.6), (4.05, 0.6))
    _arrow(axes, (11.7, 1.05), (11.7, 0.8))


def _panel(axes: Axes, place: tuple[float, float, float, float], title: str) -> None:
    """A rounded background: x, y, width and height of it, with its title in the upper right corner."""
    _box(axes, place, "", PANEL, edge="none", layer=0)
    x, y, width, height = place
    _text(axes, x + width - 0.12, y + height - 0.18, title, "right", quiet=True)


def _box(
    axes: Axes,
    place: tuple[float, float, float, float],
    text: str,
    colour: str,
    edge: str = INK,
    layer: int = 3,
) -> None:
    x, y, width, height = place
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.06")
    shape.set(facecolor=colour, edgecolor=edge, zorder=layer)
    axes.add_patch(shape)
    _text(axes, x + width / 2, y + height / 2 - 0.01, text, "center")


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], over: str = "", under: str = "") -> None:
    style = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 14}
    axes.annotate("", end, start, arrowprops=style, zorder=2)
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    _text(axes, x - 0.05, y + 0.17, over, "center")
    _text(axes, x - 0.05, y - 0.27, under, "center", quiet=True)


def _text(
    axes: Axes, x: float, y: float, text: str, align: str = "left", quiet: bool = False, colour: str | None = None
) -> None:
    if text:
        style = {"size": 9 if quiet else 10.5, "color": colour or (QUIET if quiet else INK), "zorder": 4}
        axes.text(x, y, text, ha=align, va="center", family="DejaVu Sans Mono", **style)


def write_diagram(folder: Path = PICTURES) -> Path:
    """Writes `emulator.svg`; returns its path."""
    return write_svg(draw_emulator(), folder / "emulator.svg")


if __name__ == "__main__":
    print(write_diagram().relative_to(ROOT))
