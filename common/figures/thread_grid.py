"""Which thread of which block computes which element, as a picture."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .cell_diagram import INK, QUIET
from .plots import GREEN, GRID, SKY, VERMILION, WIDTH

CELL, BLOCK_GAP = 1.0, 0.6  # of the picture's units: a thread's width, and the gap between two blocks


def draw_thread_grid(count: int, block_size: int) -> Figure:
    """One-dimensional blocks of `block_size` threads over `count` elements: each thread with the element it computes.

    A thread without an element is shown in red: a kernel needs a guard for these.
    """
    blocks = -(-count // block_size)
    width = blocks * (block_size * CELL + BLOCK_GAP)
    figure = Figure(figsize=(WIDTH, 2.1), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-1.9, width), ylim=(-0.4, 3.6))
    axes.set_axis_off()
    for y, name in ((2.0, "threadIdx.x"), (0.4, "element i")):
        axes.text(-0.25, y + 0.4, name, ha="right", va="center", family="DejaVu Sans Mono", fontsize=9, color=INK)
    for block in range(blocks):
        start = block * (block_size * CELL + BLOCK_GAP)
        middle = start + block_size * CELL / 2
        axes.text(middle, 3.25, f"blockIdx.x = {block}", ha="center", va="center", fontsize=10, color=INK)
        for thread in range(block_size):
            _draw_thread(axes, start + thread * CELL, thread, block * block_size + thread, count)
    return figure


def _draw_thread(axes: Axes, x: float, thread: int, element: int, count: int) -> None:
    """A thread, and below it its element or a cross."""
    has_element = element < count
    _draw_box(axes, x, 2.0, str(thread), SKY if has_element else VERMILION)
    axes.annotate("", (x + 0.45, 1.25), (x + 0.45, 1.95), arrowprops={"arrowstyle": "->", "color": QUIET})
    _draw_box(axes, x, 0.4, str(element) if has_element else "×", GREEN if has_element else GRID)


def _draw_box(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.add_patch(Rectangle((x, y), 0.9 * CELL, 0.8, facecolor=colour, alpha=0.55, edgecolor=INK, lw=0.6))
    axes.text(x + 0.45, y + 0.4, text, ha="center", va="center", fontsize=10, color=INK)
