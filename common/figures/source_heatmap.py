"""A kernel's source as a heat map: beside each line, what it requests from memory. See emulator/counts.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..emulator import WARP, Counted, Row, format_mean, matches_kernel, shorten
from ..errors import UserError
from .plots import BLUE, INK, VERMILION

MONOSPACE = {"family": "DejaVu Sans Mono", "fontsize": 8}
CHARACTER_WIDTH, LINE_HEIGHT = 0.0705, 0.2  # inches of that font
WASTE = LinearSegmentedColormap.from_list("waste", ["white", VERMILION])
AMOUNT = LinearSegmentedColormap.from_list("amount", ["white", BLUE])
STRONGEST = 0.75  # of a colour: the number on it stays readable
LIGHT_INK = "#666666"


@dataclass(frozen=True)
class HeatmapCell:
    """A number beside a line of source, and its colour."""

    text: str
    colour: tuple[float, ...]


def shade(scale: LinearSegmentedColormap, share: float) -> tuple[float, ...]:
    """A colour for a share of the worst or largest value."""
    return scale(STRONGEST * min(1.0, max(0.0, share)))


def doublings(ratio: float, worst: float) -> float:
    """How bad a ratio is: 0 for one, 1 for `worst` and beyond, in equal steps for each doubling."""
    return numpy.log2(max(1.0, ratio)) / numpy.log2(worst)


def line_cells(rows: Sequence[Row], most_requests: int) -> dict[str, HeatmapCell]:
    """The numbers of one line, by column: sums of requests, the others per request."""
    of_global, of_shared = [row for row in rows if row.is_global], [row for row in rows if not row.is_global]
    requests = sum(row.requests for row in rows)
    lanes = sum(row.lanes for row in rows)
    found = {
        "requests": HeatmapCell(f"{requests:,}", shade(AMOUNT, requests / most_requests)),
        "lanes": HeatmapCell(format_mean(lanes, requests), shade(WASTE, 1 - lanes / requests / WARP)),
    }
    if of_global:
        asked = sum(row.requests for row in of_global)
        sectors, ideal = sum(row.sectors for row in of_global), sum(row.ideal_sectors for row in of_global)
        found["sectors"] = HeatmapCell(format_mean(sectors, asked), shade(WASTE, doublings(sectors / ideal, 8)))
        found["ideal"] = HeatmapCell(format_mean(ideal, asked), WASTE(0.0))
    if of_shared:
        asked, conflicts = sum(row.requests for row in of_shared), sum(row.conflicts for row in of_shared)
        found["conflicts"] = HeatmapCell(
            format_mean(conflicts, asked), shade(WASTE, doublings(1 + conflicts / asked, 32))
        )
    return found


def draw_heatmap(counted: Counted, kernel: str = "") -> Figure:
    """A kernel's source as a heat map, with the requests, lanes, sectors and bank conflicts of each line.

    The kernel may be named without its template arguments, and not at all where there is one. Raises `UserError` for
    one that was not launched or has no source here.
    """
    rows = counted.of(find_kernel(counted, kernel))
    launch = next(launch for launch in counted.launches if matches_kernel(launch.kernel, kernel))
    lines = shown_lines(counted, rows)
    if not lines:
        raise UserError(f"{launch.kernel} accessed no memory, or its source is missing")
    most = max(sum(row.requests for row in rows if (row.file, row.line) == place) for place in source_places(rows))
    found = {
        place: line_cells([row for row in rows if (row.file, row.line) == place], most)
        for place in source_places(rows)
    }
    columns = [
        name
        for name in ("requests", "lanes", "sectors", "ideal", "conflicts")
        if any(name in c for c in found.values())
    ]

    longest = min(100, max(len(text) for _, _, text in lines))
    width = CHARACTER_WIDTH * (longest + 7)
    figure, axis = canvas(width + 0.75 * len(columns), LINE_HEIGHT * (len(lines) + 4.2))
    axis.set_xlim(0, width + 0.75 * len(columns))
    axis.set_ylim(len(lines) + 1.6, -2.6)
    axis.text(
        0, -2.1, f"{launch.kernel}, grid {launch.grid}, block {launch.block}", va="center", fontsize=11, color=INK
    )
    for k, name in enumerate(columns):
        x = width + 0.75 * (k + 0.5)
        axis.text(x, -0.65, name, ha="center", va="center", fontsize=8.5, color=INK)
    for y, (file, number, text) in enumerate(lines):
        axis.text(
            CHARACTER_WIDTH * 4,
            y + 0.5,
            f"{number}" if number else "",
            ha="right",
            va="center",
            color=LIGHT_INK,
            **MONOSPACE,
        )
        axis.text(CHARACTER_WIDTH * 5.5, y + 0.5, shorten(text, longest), va="center", color=INK, **MONOSPACE)
        for k, name in enumerate(columns):
            cell = found.get((file, number), {}).get(name)
            if cell:
                axis.add_patch(Rectangle((width + 0.75 * k + 0.02, y + 0.04), 0.71, 0.92, color=cell.colour, lw=0))
                axis.text(
                    width + 0.75 * (k + 0.5), y + 0.5, cell.text, ha="center", va="center", fontsize=8, color=INK
                )
    axis.text(0, len(lines) + 0.9, NOTE, va="center", fontsize=8, color=LIGHT_INK)
    return figure


NOTE = "Requests of warps; lanes, sectors and bank conflicts per request. Orange: unnecessary traffic or waiting."


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of that size in inches, and one axis that fills it."""
    figure = pyplot.figure(figsize=(width + 0.3, height + 0.1), dpi=100, facecolor="white")
    pyplot.close(figure)  # or a notebook would show it twice
    axis = figure.add_axes((0.15 / (width + 0.3), 0, width / (width + 0.3), 1))
    axis.set_axis_off()
    return figure, axis


def find_kernel(counted: Counted, name: str) -> str:
    """The full name of a kernel that was launched; the only one there is without a name."""
    known = [launch.kernel for launch in counted.launches]
    found = [kernel for kernel in known if matches_kernel(kernel, name)]
    if len(found) != 1:
        what = f"no kernel {name} was launched" if name and not found else "name one kernel"
        raise UserError(f"{what}; there are: {', '.join(known) or 'none'}")
    return found[0]


def source_places(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """The files and lines of rows, each once."""
    return list(dict.fromkeys((row.file, row.line) for row in rows))


def shown_lines(counted: Counted, rows: Sequence[Row]) -> list[tuple[str, int, str]]:
    """File, number and text of each line of the functions that rows lie in; a line without a number between two."""
    shown: list[tuple[str, int, str]] = []
    for file in dict.fromkeys(row.file for row in rows):
        path = counted.root / file
        if not file or not path.is_file():
            continue
        lines = path.read_text(errors="replace").splitlines()
        wanted = set()
        for row in rows:
            if row.file == file and row.line <= len(lines):
                wanted.update(function_around(lines, row.line))
        for number in sorted(wanted):
            if shown and shown[-1][:2] != (file, number - 1):
                shown.append(("", 0, ""))
            shown.append((file, number, lines[number - 1].expandtabs(4)))
    return shown


def function_around(lines: Sequence[str], number: int) -> range:
    """The numbers of the lines of the function that a line lies in, without the comment in front of it."""
    first = number
    while first > 1 and not begins_here(lines[first - 2], lines[first - 1]):
        first -= 1
    while first < number and re.match(r"\s*(//|$)", lines[first - 1]):
        first += 1
    last = number
    while last < len(lines) and not lines[last - 1].startswith("}") and not is_whole(lines[last - 1]):
        last += 1
    return range(first, last + 1)


def begins_here(before: str, line: str) -> bool:
    """Whether what stands at the beginning of a line begins something new."""
    ends = not before.strip() or before.startswith(("}", "#")) or is_whole(before)
    return ends and line[:1].strip() not in ("", "}")


def is_whole(line: str) -> bool:
    """Whether a function, or a declaration, begins and ends in a line."""
    return bool(re.match(r"\S.*[};]\s*(//.*)?$", line))
