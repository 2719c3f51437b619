"""How threads work together, as pictures: a warp's shuffles, a block's shared memory, barriers, races and atomics."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..plots import GREEN, GRID, ORANGE, PURPLE, SKY, VERMILION, WIDTH
from .cell_diagram import INK, PANEL, QUIET

CODE = "DejaVu Sans Mono"
WARP_COLOURS = (SKY, ORANGE, GREEN, PURPLE)


def draw_levels() -> Figure:
    """Grid, block and warp, and what the threads of each share."""
    figure, axes = _make_canvas(3.6, width=20, height=7.2)
    for block, x in enumerate((0.2, 5.9)):
        _draw_box(axes, x, 1.9, 5.4, 5.1, PANEL)
        _write(axes, x + 2.7, 6.55, f"block {block}")
        for warp, y in enumerate((5.2, 4.1)):
            _write(axes, x + 0.75, y + 0.35, f"warp {warp}", size=9)
            for lane in range(32):
                _draw_box(axes, x + 1.5 + 0.115 * lane, y, 0.115, 0.7, SKY, edge=0.3)
        _draw_box(axes, x + 0.25, 2.3, 4.9, 1.0, ORANGE, "shared memory of the block")
    _draw_box(axes, 0.2, 0.3, 11.1, 1.0, GREEN, "global memory: tensors")
    for y, who, how in (
        (4.95, "the 32 lanes of a warp", "read each other's registers: __shfl_down_sync"),
        (2.8, "the threads of a block", "share memory and wait for each other: __syncthreads"),
        (0.8, "all blocks of the grid", "share global memory; no barrier, but atomicAdd"),
    ):
        _write(axes, 11.7, y + 0.3, who, align="left", weight="bold")
        _write(axes, 11.7, y - 0.35, how, align="left", size=9.5)
    return figure


def draw_shuffle_sum(values: Sequence[int] = (3, 1, 4, 1, 5, 9, 2, 6)) -> Figure:
    """The sum over the lanes of a warp by shuffles, for a warp of a few lanes: a row for each step."""
    steps = shuffle_steps(values)
    figure, axes = _make_canvas(3.5, width=2.4 * len(values) + 6, height=2 * len(steps) + 0.6)
    for k, (apart, row) in enumerate(steps):
        y = 2 * (len(steps) - 1 - k) + 0.2
        _write(axes, 0.2, y + 0.5, f"apart = {apart}" if apart else "sum of each lane", align="left", family=CODE)
        counting = apart or len(values)  # the lanes whose value is still part of the result
        for lane, value in enumerate(row):
            x = _lane_x(lane)
            _draw_box(axes, x, y, 1.4, 1, SKY if lane < counting else GRID, str(value))
            if apart and lane < apart:
                _draw_arrow(axes, (x + 0.7, y + 2), (x + 0.7, y + 1))
                _draw_arrow(axes, (_lane_x(lane + apart) + 0.4, y + 2), (x + 1.1, y + 1), VERMILION)
    for lane in range(len(values)):
        _write(axes, _lane_x(lane) + 0.7, 2 * len(steps) - 0.45, f"lane {lane}", size=9)
    return figure


def shuffle_steps(values: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The values of the lanes after each step, with its distance. A read beyond the last lane returns its own."""
    row, apart, steps = list(values), len(values) // 2, [(0, list(values))]
    while apart:
        row = [value + (row[lane + apart] if lane + apart < len(row) else value) for lane, value in enumerate(row)]
        steps.append((apart, row))
        apart //= 2
    return steps


def draw_block_sum(rows: int = 8, warps: int = 4, lanes: int = 8) -> Figure:
    """A block's sum of each column: the warps take turns at the rows, and leave their sums in shared memory."""
    figure, axes = _make_canvas(3.4, width=40, height=rows + 5)
    for x, title, place in (
        (3.6, "d_z", "global memory"),
        (17.5, "partial", "shared memory"),
        (30.4, "d_bias", "global memory"),
    ):
        _write(axes, x + lanes / 2, rows + 4.2, title, family=CODE, weight="bold")
        _write(axes, x + lanes / 2, rows + 3.2, place, size=9, colour=QUIET)
    for row in range(rows):
        y, warp = rows - row + 1, row % warps
        _write(axes, 3.2, y + 0.5, f"warp {warp}", align="right", size=8)
        _draw_row(axes, 3.6, y, lanes, WARP_COLOURS[warp])
    below = (rows - warps) / 2 + 2
    for warp in range(warps):
        y = below + warps - 1 - warp
        _write(axes, 17.1, y + 0.5, f"[{warp}]", align="right", size=8, family=CODE)
        _draw_row(axes, 17.5, y, lanes, WARP_COLOURS[warp])
    middle = below + warps / 2
    _draw_row(axes, 30.4, middle - 0.5, lanes, WARP_COLOURS[0])
    _draw_arrow(axes, (12, middle), (15.2, middle))
    _draw_arrow(axes, (25.9, middle), (29.9, middle))
    _write(axes, 3.6 + lanes / 2, 1, "each warp adds up\nits rows in registers", size=9)
    _write(axes, 27.1, 1, "after __syncthreads() warp 0 adds up the columns", size=9)
    return figure


def draw_barrier(warps: int = 4) -> Figure:
    """When the warps of a block write and read shared memory: without a barrier, and with one."""
    figure, axes = _make_canvas(2.9, width=40, height=warps + 3)
    ends = (3.0, 5.0, 8.5, 6.5)  # when each warp has written
    for x, title, start, colour in (
        (3.4, "without a barrier", ends[0], VERMILION),
        (23.4, "with __syncthreads()", max(ends), GREEN),
    ):
        _write(axes, x, warps + 2.3, title, align="left", weight="bold")
        for warp in range(warps):
            y, begin = warps - warp + 0.1, x + ends[warp] - 3
            _write(axes, x - 0.4, y + 0.4, f"warp {warp}", align="right", size=9)
            _draw_box(axes, begin, y, 3, 0.8, WARP_COLOURS[warp], "writes")
        _draw_box(axes, x + start + 0.3, warps + 0.1, 5.4, 0.8, colour, "reads all four")
        if start == max(ends):
            axes.plot([x + start + 0.1] * 2, [0.9, warps + 1.3], color=INK, ls="--", lw=1.5)
        _draw_arrow(axes, (x, 0.6), (x + 14, 0.6), QUIET)
        _write(axes, x + 14.2, 0.6, "time", align="left", size=9, colour=QUIET)
    _write(axes, 12.4, warps + 0.5, "too early", align="left", size=9, colour=VERMILION)
    return figure


# The steps in order: which block does what, and the value in memory afterwards.
LOST_UPDATE = (
    (0, "reads 0", 0),
    (1, "reads 0", 0),
    (0, "writes 0 + 3", 3),
    (1, "writes 0 + 5", 5),
)
ATOMIC_UPDATE = ((0, "atomicAdd 3", 3), (1, "atomicAdd 5", 8))


def draw_lost_update() -> Figure:
    """Two blocks add to one element: by `+=`, where one of the sums is lost, and by atomicAdd."""
    figure, axes = _make_canvas(3.4, width=40, height=8.4)
    _draw_turns(axes, 0.4, "d_bias[column] += total", LOST_UPDATE, VERMILION, "3 is lost")
    _draw_turns(axes, 21.4, "atomicAdd(&d_bias[column], total)", ATOMIC_UPDATE, GREEN, "3 + 5")
    return figure


def _draw_turns(
    axes: Axes, x: float, title: str, turns: Sequence[tuple[int, str, int]], colour: str, result: str
) -> None:
    """One way to add: a line for each turn, from the top down, with the content of memory on the right."""
    _write(axes, x, 7.9, title, align="left", family=CODE, weight="bold")
    for dx, heading in ((2.7, "block 0"), (8.7, "block 1"), (14.4, "in memory")):
        _write(axes, x + dx, 6.85, heading, size=9, colour=QUIET)
    _write(axes, x + 14.4, 6.05, "0", size=10)
    for k, (block, what, memory) in enumerate(turns):
        y, is_last = 4.5 - 1.3 * k, k == len(turns) - 1
        _draw_box(axes, x + 6 * block, y, 5.4, 1, WARP_COLOURS[block], what)
        _draw_box(axes, x + 13.4, y, 2, 1, colour if is_last else "white", str(memory))
        if is_last:
            _write(axes, x + 15.8, y + 0.5, result, align="left", size=9)


def _make_canvas(inches: float, width: float, height: float) -> tuple[Figure, Axes]:
    """An empty picture as wide as a notebook, with coordinates from 0 to `width` and `height`."""
    figure = Figure(figsize=(WIDTH, inches), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    return figure, axes


def _lane_x(lane: int) -> float:
    return 5.6 + 2.4 * lane


def _draw_row(axes: Axes, x: float, y: float, lanes: int, colour: str) -> None:
    for lane in range(lanes):
        _draw_box(axes, x + lane, y, 0.9, 0.9, colour)


def _draw_box(
    axes: Axes, x: float, y: float, width: float, height: float, colour: str, text: str = "", edge: float = 0.6
) -> None:
    axes.add_patch(Rectangle((x, y), width, height, facecolor=_lighten(colour), edgecolor=INK, lw=edge))
    if text:
        _write(axes, x + width / 2, y + height / 2, text)


def _lighten(colour: str) -> tuple[float, ...] | str:
    """Light enough to carry black text; white and the panels' grey are."""
    if colour in ("white", PANEL, GRID):
        return colour
    return tuple(1 - 0.55 * (1 - int(colour[k : k + 2], 16) / 255) for k in (1, 3, 5))


def _draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = INK) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0})


def _write(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    align: str = "center",
    size: float = 10,
    colour: str = INK,
    weight: str = "normal",
    family: str = "DejaVu Sans",
) -> None:
    axes.text(x, y, text, ha=align, va="center", size=size, color=colour, weight=weight, family=family)
