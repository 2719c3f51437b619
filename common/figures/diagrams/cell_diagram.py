"""The data flow of the cell as a picture, forward and backward.

`python -m common.figures.diagrams.cell_diagram` writes both to docs/pictures/.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ...paths import ROOT

PICTURES = ROOT / "docs" / "pictures"

# Okabe and Ito's colour-blind safe set, light enough to carry text; the cell's own line is its vermilion.
INK, QUIET, CELL = "#1a1a1a", "#555555", "#d55e00"
MATRIX, POINTWISE, PANEL = "#c9e3f3", "#fdeab5", "#f5f5f5"

# Positions in inches: the columns of the operations, the rows of the cell and of the three gates.
WIDTH, HEIGHT = 13.1, 4.95
CONCAT, LINEAR, CHUNK, GATE, TIMES, OUT, RIGHT = 1.85, 4.1, 6.3, 8.05, 10.2, 11.55, 12.1
CELL_ROW, INPUT_ROW, CANDIDATE_ROW, OUTPUT_ROW = 4.75, 3.5, 2.45, 1.35
OLD_H_ROW, BELOW, LEFT = 3.1, 1.5, 1.05


class Wire(NamedTuple):
    """A tensor on its way: its corners in forward order, and what stands on it in each direction."""

    corners: list[tuple[float, float]]
    forward: tuple[str, str] = ("", "")  # name, shape
    backward: tuple[str, str] = ("", "")  # gradient, the factor it was multiplied by
    colour: str = INK


class Box(NamedTuple):
    """An operation: where it is, its size, and what it does in each direction."""

    x: float
    y: float
    width: float
    height: float
    forward: str
    backward: str
    colour: str


class Terminal(NamedTuple):
    """Where a tensor enters or leaves the picture: its name and shape, and its gradient."""

    x: float
    y: float
    align: str
    name: str
    shape: str
    gradient: str
    formula: str = ""


WIRES = [
    Wire([(LEFT + 0.05, OLD_H_ROW), (CONCAT - 0.4, OLD_H_ROW)]),
    Wire([(LEFT + 0.05, CANDIDATE_ROW), (CONCAT - 0.4, CANDIDATE_ROW)]),
    Wire([(CONCAT + 0.4, 2.78), (LINEAR - 0.85, 2.78)], ("X", "(B, S+I)"), ("d_X", "")),
    Wire([(LINEAR - 0.6, BELOW), (LINEAR - 0.6, 2.33)]),
    Wire([(LINEAR + 0.6, BELOW), (LINEAR + 0.6, 2.33)]),
    Wire([(LINEAR + 0.85, 2.78), (CHUNK - 0.475, 2.78)], ("z", "(B, 3S)"), ("d_z", "")),
    Wire([(CHUNK + 0.475, INPUT_ROW), (GATE - 0.55, INPUT_ROW)], ("z_i", "(B, S)"), ("d_z_i", "")),
    Wire([(CHUNK + 0.475, CANDIDATE_ROW), (GATE - 0.55, CANDIDATE_ROW)], ("z_g", "(B, S)"), ("d_z_g", "")),
    Wire([(CHUNK + 0.475, OUTPUT_ROW), (GATE - 0.55, OUTPUT_ROW)], ("z_o", "(B, S)"), ("d_z_o", "")),
    Wire(
        [(GATE + 0.55, INPUT_ROW), (TIMES - 0.2, INPUT_ROW)],
        ("input_gate", "(B, S)"),
        ("d_input_gate", "× candidate_cell"),
    ),
    Wire(
        [(GATE + 0.55, CANDIDATE_ROW), (TIMES, CANDIDATE_ROW), (TIMES, INPUT_ROW - 0.2)],
        ("candidate_cell", "(B, S)"),
        ("d_candidate_cell", "× input_gate"),
    ),
    Wire(
        [(GATE + 0.55, OUTPUT_ROW), (OUT - 0.2, OUTPUT_ROW)],
        ("output_gate", "(B, S)"),
        ("d_output_gate", "× tanh(new_cell)"),
    ),
    Wire([(TIMES, INPUT_ROW + 0.2), (TIMES, CELL_ROW - 0.2)]),
    Wire([(OUT, CELL_ROW - 0.2), (OUT, 3.3)]),
    Wire([(OUT, 2.7), (OUT, OUTPUT_ROW + 0.2)], ("", ""), ("", "× output_gate")),
    Wire([(OUT + 0.2, OUTPUT_ROW), (RIGHT, OUTPUT_ROW)]),
    Wire([(LEFT + 0.1, CELL_ROW), (TIMES - 0.2, CELL_ROW)], colour=CELL),
    Wire([(TIMES + 0.2, CELL_ROW), (RIGHT, CELL_ROW)], colour=CELL),
]

BOXES = [
    Box(CONCAT, 2.78, 0.8, 1.3, "concat", "split", MATRIX),
    Box(LINEAR, 2.78, 1.7, 0.9, "X @ weights.T\n+ bias", "d_z @ weights", MATRIX),
    Box(CHUNK, 2.43, 0.95, 2.8, "chunk(3,\ndim=1)", "concat", MATRIX),
    Box(GATE, INPUT_ROW, 1.1, 0.6, "sigmoid", "× sigmoid′", POINTWISE),
    Box(GATE, CANDIDATE_ROW, 1.1, 0.6, "elu", "× elu′", POINTWISE),
    Box(GATE, OUTPUT_ROW, 1.1, 0.6, "sigmoid", "× sigmoid′", POINTWISE),
    Box(OUT, 3.0, 1.1, 0.6, "tanh", "× tanh′", POINTWISE),
]

TERMINALS = [
    Terminal(LEFT, CELL_ROW, "right", "old_cell", "(B, S)", "d_old_cell"),
    Terminal(LEFT, OLD_H_ROW, "right", "old_h", "(B, S)", "d_old_h"),
    Terminal(LEFT, CANDIDATE_ROW, "right", "input", "(B, I)", "d_input"),
    Terminal(LINEAR - 0.6, BELOW - 0.3, "center", "weights", "(3S, S+I)", "d_weights", "= d_z.T @ X"),
    Terminal(LINEAR + 0.6, BELOW - 0.3, "center", "bias", "(3S)", "d_bias", "= d_z.sum(0)"),
    Terminal(RIGHT + 0.05, CELL_ROW, "left", "new_cell", "(B, S)", "grad_cell"),
    Terminal(RIGHT + 0.05, OUTPUT_ROW, "left", "new_h", "(B, S)", "grad_h"),
]


def draw_dataflow(backward: bool = False) -> Figure:
    """The data flow of the cell, with the shape on each edge; `backward=True` draws how gradients flow."""
    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0.25, 0.25 + HEIGHT))
    axes.set_axis_off()
    _panels(axes, backward)
    ends = [LEFT + 0.2, RIGHT] if backward else [LEFT + 0.1, RIGHT - 0.1]  # the arrow's tip covers the rest
    axes.plot(ends, [CELL_ROW] * 2, color=CELL, linewidth=3.5, solid_capstyle="butt")
    axes.plot([TIMES] * 2, [INPUT_ROW, CELL_ROW], color=INK, zorder=1)
    axes.plot([OUT] * 2, [OUTPUT_ROW, CELL_ROW], color=INK, zorder=1)
    for wire in WIRES:
        _wire(axes, wire, backward)
    for box in BOXES:
        _box(axes, box.x, box.y, box.width, box.height, box.colour)
        _text(axes, box.x, box.y, box.backward if backward else box.forward)
    # A copy forward is a sum backward, and a sum forward is a copy backward.
    plus, copy = (OUT, TIMES) if backward else (TIMES, OUT)
    _operator(axes, plus, CELL_ROW, "+", CELL)
    axes.plot([copy], [CELL_ROW], "o", color=CELL, markersize=8)
    _operator(axes, TIMES, INPUT_ROW, "×", INK)
    _operator(axes, OUT, OUTPUT_ROW, "×", INK)
    for end in TERMINALS:
        _text(axes, end.x, end.y + 0.02, end.gradient if backward else end.name, end.align, "bottom")
        below = f"{end.shape}\n{end.formula}" if backward else end.shape
        _text(axes, end.x, end.y - 0.04, below, end.align, "top", quiet=True)
    return figure


def _panels(axes: Axes, backward: bool) -> None:
    """Draws the two parts of the cell and explains the path of the cell state."""
    for left, right, title in [
        (CONCAT - 0.55, CHUNK + 0.6, "matrix part"),
        (CHUNK + 0.72, OUT + 0.65, "pointwise part (in z the order is z_i, z_o, z_g)"),
    ]:
        _box(axes, (left + right) / 2, 2.27, right - left, 3.65, PANEL, edge="none")
        _text(axes, left + 0.12, 0.53, title, "left", "bottom", quiet=True)
    over = CELL_ROW + 0.1
    lesson = "times 1: d_old_cell is d_new_cell itself" if backward else "never forgets: only added to"
    _text(axes, CONCAT, over, lesson, "left", "bottom", colour=CELL)
    if backward:
        _text(axes, (TIMES + OUT) / 2 - 0.07, over, "d_new_cell", "center", "bottom", colour=CELL)


def _wire(axes: Axes, wire: Wire, backward: bool) -> None:
    """An arrow along the corners, its name over the first, horizontal part, what belongs to it below."""
    corners = wire.corners[::-1] if backward else wire.corners
    if wire.colour == INK:
        axes.plot([x for x, _ in corners], [y for _, y in corners], color=INK, linewidth=1.5, solid_capstyle="butt")
    axes.annotate(
        "",
        corners[-1],
        corners[-2],
        arrowprops={
            "arrowstyle": "-|>",
            "color": wire.colour,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 18 if wire.colour == INK else 26,
        },
    )
    (x0, y0), (x1, y1) = wire.corners[:2]
    over, under = wire.backward if backward else wire.forward
    if y0 == y1:
        middle = x0 + 0.77 if len(over) > 8 else (x0 + x1) / 2
        _text(axes, middle, y0 + 0.05, over, "center", "bottom")
        _text(axes, middle, y0 - 0.09, under, "center", "top", quiet=True)
    else:
        _text(axes, x0 - 0.08, (y0 + y1) / 2, under, "right", quiet=True)


def _box(axes: Axes, x: float, y: float, width: float, height: float, colour: str, edge: str = INK) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=colour,
            edgecolor=edge,
            zorder=0 if edge == "none" else 3,
        )
    )


def _operator(axes: Axes, x: float, y: float, sign: str, colour: str) -> None:
    axes.plot([x], [y], "o", markersize=27, markerfacecolor=POINTWISE, markeredgecolor=colour, zorder=3)
    _text(axes, x, y - 0.01, sign, size=17)


def _text(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    align: str = "center",
    vertical: str = "center",
    quiet: bool = False,
    size: float | None = None,
    colour: str | None = None,
) -> None:
    axes.text(
        x,
        y,
        text,
        ha=align,
        va=vertical,
        size=size or (9.5 if quiet else 11),
        color=colour or (QUIET if quiet else INK),
        family="DejaVu Sans Mono",
        zorder=4,
    )


def write_svg(figure: Figure, path: Path) -> Path:
    """Writes a figure as SVG with text as paths, the same bytes each time; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "lltm", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    return path


def write_diagrams(folder: Path = PICTURES) -> list[Path]:
    """Writes `dataflow.svg` and `dataflow_backward.svg`; returns their paths."""
    names = {"dataflow.svg": False, "dataflow_backward.svg": True}
    return [write_svg(draw_dataflow(backward=backward), folder / name) for name, backward in names.items()]


if __name__ == "__main__":
    for path in write_diagrams():
        print(path.relative_to(ROOT))
