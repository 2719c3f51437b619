"""Access maps: which thread accesses which element of a tensor, and which sectors. See emulator/counts.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy
from matplotlib import colormaps, pyplot
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from ..emulator import SECTOR, WARP, Access, Array, Counted
from ..errors import UserError
from .plots import BLUE, INK, VERMILION, WIDTH
from .source_heatmap import find_kernel

LANES = colormaps["viridis"]
OTHER_WARPS, NOT_ACCESSED = "#c8c8c8", "white"
MOST_CELLS = 40_000  # the largest tensor that is drawn completely
MOST_ENDS = 1000  # of sectors, that can be told apart


def draw_access_map(counted: Counted, array: str, kernel: str = "", warp: int = 0, line: int | None = None) -> Figure:
    """An array as a grid: the accesses of one warp in the colours of its lanes, those of other warps in grey.

    `counted` must have been traced: `collect_counts(module, block=0)`. With `line`, only that line's accesses.
    Raises `UserError` when the array was not accessed.
    """
    found = find_accesses(counted, array, find_kernel(counted, kernel), line)
    shape = grid_shape(found[0].array, 1 + max(t.element + t.count for t in found))
    lanes = numpy.full(shape, -2)  # -2: not accessed; -1: by another warp of the block
    for access in sorted(found, key=lambda access: access.warp == warp):
        for element in range(access.element, access.element + access.count):
            lanes[position(access.array, element, shape)] = access.thread % WARP if access.warp == warp else -1
    rows, columns = shape
    is_flat = 1 <= columns / rows <= 12
    height = min(5.0, max(1.2, 8.5 * rows / columns))
    figure = pyplot.figure(figsize=(WIDTH, height + 1.2), layout="constrained", facecolor="white")
    pyplot.close(figure)  # or a notebook would show it twice
    axis = figure.subplots()
    axis.imshow(lane_colours(lanes), aspect="equal" if is_flat else "auto", interpolation="nearest")
    number_cells(axis, lanes)
    draw_grid(axis, found[0].array, shape, found[0].space.startswith("shared"))
    figure.suptitle(map_title(found, warp, line), x=0.01, ha="left", fontsize=11)
    bar = figure.colorbar(ScalarMappable(Normalize(0, WARP - 1), LANES), ax=axis, pad=0.01, fraction=0.03)
    bar.set_ticks([0, 15, 31])
    bar.set_label(f"lane of warp {warp}")
    return figure


def find_accesses(counted: Counted, array: str, kernel: str, line: int | None = None) -> list[Access]:
    """A kernel's accesses to an array. If there are none, raises `UserError` with the arrays that it does access."""
    of_kernel = [access for access in counted.accesses if access.kernel == kernel]
    if not of_kernel:
        raise UserError(f"no thread of {kernel} was traced: count with collect_counts(module, block=0)")
    found = [access for access in of_kernel if access.array.name == array and line in (None, access.line)]
    if not found:
        where = f" in line {line}" if line else ""
        names = ", ".join(dict.fromkeys(access.array.name for access in of_kernel if line in (None, access.line)))
        raise UserError(f"{kernel} does not access {array}{where}; it accesses: {names or 'nothing'}")
    return found


def grid_shape(array: Array, at_least: int) -> tuple[int, int]:
    """Rows and columns: the last dimension in columns; memory without a shape in rows of 32 elements."""
    if not array.sizes:
        return -(-at_least // WARP), WARP
    *outer, columns = array.sizes
    rows = int(numpy.prod(outer)) if outer else 1
    if rows * columns > MOST_CELLS:
        rows = max(1, min(rows, MOST_CELLS // columns))
    return rows, columns


def position(array: Array, element: int, shape: tuple[int, int]) -> tuple[int, int]:
    """Row and column of an element; elements beyond the drawn part are placed on its edge."""
    if not array.sizes:
        return divmod(element, shape[1])
    *outer, column = array.index(element)
    row = int(numpy.ravel_multi_index(outer, array.sizes[:-1], mode="clip")) if outer else 0
    return min(row, shape[0] - 1), min(column, shape[1] - 1)


def lane_colours(lanes: numpy.ndarray) -> numpy.ndarray:
    """An image: colours of lanes, grey for -1, white for -2."""
    image = LANES(numpy.clip(lanes, 0, None) / (WARP - 1))[..., :3]
    image[lanes == -1] = to_rgb(OTHER_WARPS)
    image[lanes == -2] = to_rgb(NOT_ACCESSED)
    return image


def number_cells(axis: Axes, lanes: numpy.ndarray) -> None:
    """Writes the lane into each cell if there is room."""
    rows, columns = lanes.shape
    if columns > 40 or rows > 24:
        return
    for (y, x), lane in numpy.ndenumerate(lanes):
        if lane >= 0:
            axis.text(x, y, str(lane), ha="center", va="center", fontsize=7, color="white" if lane < 20 else INK)


def draw_grid(axis: Axes, array: Array, shape: tuple[int, int], is_shared: bool) -> None:
    """Draws lines between cells if they are large enough, stronger lines at sector boundaries, and axis labels."""
    rows, columns = shape
    if columns <= 80 and rows <= 40:
        axis.set_xticks(numpy.arange(-0.5, columns), minor=True)
        axis.set_yticks(numpy.arange(-0.5, rows), minor=True)
        axis.grid(which="minor", color="#e5e5e5", lw=0.5)
        axis.tick_params(which="minor", length=0)
    for side in axis.spines.values():
        side.set_color("#888888")
    axis.set_yticks(range(rows) if rows <= 12 else numpy.linspace(0, rows - 1, 7).astype(int))
    axis.set_ylabel("row")
    name = "last dimension" if array.sizes else f"element of {columns} in a row"
    ends = [] if is_shared else sector_ends(array, shape)
    if is_shared and array.element == 4 and not array.sizes:
        name = "bank"  # of shared memory, which has as many as a row has elements
    if 0 < len(ends) <= MOST_ENDS:
        x, y = (numpy.array(side) for side in zip(*ends, strict=True))
        axis.vlines(x - 0.5, y - 0.5, y + 0.5, "#777777", lw=0.7)
        name += f"; lines mark the boundaries of sectors of {SECTOR} bytes"
    axis.set_xlabel(name)


def sector_ends(array: Array, shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Column and row of the elements of a grid with which a new sector begins."""
    rows, columns = shape
    ends = []
    for row in range(rows):
        if array.sizes:
            outer = numpy.unravel_index(row, array.sizes[:-1]) if len(array.sizes) > 1 else ()
            first, step = int(numpy.dot(outer, array.strides[:-1])), array.strides[-1]
        else:
            first, step = row * columns, 1
        sectors = [array.sector(first + column * step) for column in range(columns)]
        ends += [(column, row) for column in range(1, columns) if sectors[column] != sectors[column - 1]]
    return ends


def map_title(found: Sequence[Access], warp: int, line: int | None) -> str:
    """The title of a map."""
    array = found[0].array
    shape = f" {array.sizes}" if array.sizes else ""
    where = f" in line {line}" if line else ""
    return f"{array.name}{shape}: accesses by one block of {found[0].kernel}{where}; in colour: warp {warp}, by lane"


# Two versions -------------------------------------------------------------------------------------------------


def draw_versions(found: Mapping[str, Counted], kernel: str, array: str) -> Figure:
    """Versions of a kernel side by side: the sectors of one request to an array, and the total of bytes moved.

    Each must have been traced: `collect_counts(module, block=0)`.
    """
    with pyplot.rc_context({"axes.titlesize": 11, "axes.spines.right": False, "axes.spines.top": False}):
        figure = pyplot.figure(figsize=(WIDTH, 5.2), layout="constrained", facecolor="white")
        memory, totals = figure.subplots(2, len(found), height_ratios=[3, 1], squeeze=False)
    pyplot.close(figure)
    most = max(counted.total("sectors", kernel) for counted in found.values()) * SECTOR / 1024
    for above, below, (name, counted) in zip(memory, totals, found.items(), strict=True):
        full = find_kernel(counted, kernel)
        draw_request(above, find_accesses(counted, array, full))
        above.set_title(f"{name}: one request to {array}", loc="left")
        draw_totals(below, counted, full, most)
    return figure


def draw_request(axis: Axes, found: Sequence[Access]) -> None:
    """The first request of the first warp: each of its sectors is a box, its lanes' elements are coloured."""
    first = min(found, key=lambda access: (access.warp, access.instruction, access.request))
    array, key = first.array, (first.warp, first.instruction, first.request)
    lanes = {}
    for access in found:
        if (access.warp, access.instruction, access.request) == key:
            lanes |= {access.element + k: access.thread % WARP for k in range(access.count)}
    sectors = sorted({array.sector(element) for element in lanes})
    in_a_sector, across = SECTOR // array.element, 4
    axis.set_xlim(-0.3, across * (in_a_sector + 1))
    axis.set_ylim(8 * 1.5 + 1, -0.5)
    axis.set_axis_off()
    for k, sector in enumerate(sectors):
        x, y = k % across * (in_a_sector + 1), k // across * 1.5
        for cell in range(in_a_sector):
            lane = lanes.get(sector * in_a_sector + cell - array.past_sector // array.element)
            colour = NOT_ACCESSED if lane is None else LANES(lane / (WARP - 1))
            axis.add_patch(Rectangle((x + cell, y), 1, 1, fc=colour, ec="#bbbbbb", lw=0.5))
        axis.add_patch(Rectangle((x, y), in_a_sector, 1, fill=False, ec=INK, lw=1))
    text = f"{len(lanes)} elements in {len(sectors)} sectors of {SECTOR} bytes"
    axis.text(0, -(-len(sectors) // across) * 1.5 + 0.3, text, va="center", fontsize=9.5, color=INK)


def draw_totals(axis: Axes, counted: Counted, kernel: str, most: float) -> None:
    """Bars for the bytes that a kernel moves, and for those that it would move without gaps."""
    moved, ideal = (counted.total(what, kernel) * SECTOR / 1024 for what in ("sectors", "ideal_sectors"))
    axis.barh([0, 1], [moved, ideal], color=[VERMILION if moved > 1.1 * ideal else BLUE, "#999999"], height=0.6)
    for y, value in enumerate((moved, ideal)):
        axis.annotate(f"{value:,.0f}", (value, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axis.set_yticks([0, 1], ["moved", "needed"])
    axis.set_ylim(1.5, -0.5)
    axis.set_xlim(0, 1.2 * most)
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_xlabel("KiB in sectors, over all requests of the kernel")
