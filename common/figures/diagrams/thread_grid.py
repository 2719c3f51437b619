"""Which thread of which block computes which element, as pictures."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..plots import GREEN, GRID, ORANGE, PURPLE, SKY, VERMILION, WIDTH, YELLOW
from .cell_diagram import INK, QUIET

CELL, BLOCK_GAP = 1.0, 0.6  # of the picture's units: a thread's width, and the gap between two blocks
BLOCK_COLOURS = (SKY, ORANGE, GREEN, PURPLE, YELLOW, GRID)


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


def draw_owners(owners: list[list[list[int]]], row_name: str = "row") -> Figure:
    """A matrix whose elements show which thread wrote them, (block x, block y, thread x); -1 if no thread did.

    The number is the thread, the colour its block, which is named above its first element in each row.
    """
    rows, columns = len(owners), max(map(len, owners))
    figure = Figure(figsize=(WIDTH, 0.3 + 0.62 * rows), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-1.5, 1.35 * columns), ylim=(0, 1.5 * rows + 0.1))
    axes.set_axis_off()
    for row, line in enumerate(owners):
        y = 1.5 * (rows - 1 - row) + 0.15
        axes.text(-0.25, y + 0.4, f"{row_name} {row}", ha="right", va="center", fontsize=10, color=INK)
        for column, (block_x, block_y, thread) in enumerate(line):
            if thread < 0:
                continue
            x, block = 1.35 * column, (block_x, block_y)
            if column == 0 or tuple(line[column - 1][:2]) != block:
                axes.text(x, y + 1.02, f"block {block}", va="center", fontsize=8.5, color=INK)
            _draw_box(axes, x, y, str(thread), BLOCK_COLOURS[(block_x + 3 * block_y) % len(BLOCK_COLOURS)], 1.25)
    return figure


def _draw_thread(axes: Axes, x: float, thread: int, element: int, count: int) -> None:
    """A thread, and below it its element or a cross."""
    has_element = element < count
    _draw_box(axes, x, 2.0, str(thread), SKY if has_element else VERMILION)
    axes.annotate("", (x + 0.45, 1.25), (x + 0.45, 1.95), arrowprops={"arrowstyle": "->", "color": QUIET})
    _draw_box(axes, x, 0.4, str(element) if has_element else "×", GREEN if has_element else GRID)


def _draw_box(axes: Axes, x: float, y: float, text: str, colour: str, width: float = 0.9 * CELL) -> None:
    axes.add_patch(Rectangle((x, y), width, 0.8, facecolor=colour, alpha=0.55, edgecolor=INK, lw=0.6))
    axes.text(x + width / 2, y + 0.4, text, ha="center", va="center", fontsize=10, color=INK)
