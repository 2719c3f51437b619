"""The ladder as a chart: how many times as fast as eager each implementation is, in one recorded run.

`python -m common.figures.ladder_chart` writes docs/pictures/ladder-light.svg and ladder-dark.svg.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .. import stages
from ..errors import UserError
from ..paths import ROOT
from ..results import records
from ..results.rows import device_name, headline_names, select, size_label

PICTURES = ROOT / "docs" / "pictures"
WIDTH, LABELS, ROW, TOP = 800, 345, 26, 64  # pixels: of the chart, of its labels, of a bar, of the title
TITLE = "Forward and backward of one call: times as fast as eager PyTorch"
NOT_MEASURED = "not measured"


class Theme(NamedTuple):
    """The colours of a chart."""

    text: str
    quiet: str
    peer: str
    stage: str
    line: str


THEMES = {
    "light": Theme("#1f2328", "#59636e", "#9aa4ae", "#0072b2", "#59636e"),
    "dark": Theme("#f0f6fc", "#9198a1", "#6e7681", "#56b4e9", "#9198a1"),
}


class Bar(NamedTuple):
    """One implementation. `speedup` is eager's time divided by its own, both of the same run; None: not measured."""

    label: str
    speedup: float | None
    is_stage: bool

    @property
    def length(self) -> float:
        """The length of the bar, in times as fast as eager."""
        return self.speedup or 0

    @property
    def number(self) -> str:
        """What stands at the end of the bar."""
        return NOT_MEASURED if self.speedup is None else f"{self.speedup:.2f}"


def recorded_on_a_gpu() -> dict:
    """The recorded measurement that the chart shows. Raises `UserError` when there is none."""
    for result in records.read_recorded():
        if select(result, device="cuda", grads="all"):
            return result
    raise UserError("docs/results/ has no measurement of a GPU; `make bench` makes one")


def ladder_bars(rows: list[dict]) -> list[Bar]:
    """A bar for each implementation that matters most, from rows of one size and pass."""
    titles = {f"stage {stage.number}": f"stage {stage.number}: {stage.title}" for stage in stages.cell_stages()}
    speedup = {row["name"]: 1 / row["ratio"] for row in rows}
    return [Bar(titles.get(name, name), speedup.get(name), name in titles) for name in headline_names(rows)]


class LadderChart:
    """Forward and backward of one call at the smallest measured size. Notebooks draw it, `str` is text.

    Without a result it is the recorded one of a GPU.
    """

    def __init__(self, result: dict | None = None, device: str = "cuda"):
        result = result or recorded_on_a_gpu()
        rows = select(result, device=device, grads="all")
        size, torch = size_label(rows[0]), result["versions"]["torch"].partition("+")[0]
        of_size = "batch {B}, {I} inputs, state {S}".format_map(rows[0])
        self.bars = ladder_bars(
            [row for row in rows if size_label(row) == size and row["pass"] == "forward+backward"]
        )
        self.origin = f"{device_name(result, device)}, {of_size}, float32, torch {torch}, {result['date'][:10]}"

    def _repr_svg_(self) -> str:
        return draw_svg(self.bars, self.origin)

    def __str__(self) -> str:
        scale = 30 / max(bar.length for bar in self.bars)
        lines = [f"  {bar.label:44} {'#' * round(scale * bar.length)} {bar.number}" for bar in self.bars]
        return "\n".join([TITLE, self.origin, *lines])


def draw_svg(bars: Sequence[Bar], origin: str, theme: str = "light") -> str:
    """The chart as SVG, with what was measured where below its title."""
    colours = THEMES[theme]
    scale = (WIDTH - LABELS - 60) / max(bar.length for bar in bars)
    height, one = TOP + ROW * len(bars) + 16, LABELS + scale
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="14">',
        f"<title>{TITLE}: {', '.join(f'{bar.label} {bar.number}' for bar in bars)}</title>",
        text(0, 20, TITLE, colours.text, 'font-weight="600" font-size="16"'),
        text(0, 42, origin, colours.quiet, 'font-size="12"'),
    ]
    for k, bar in enumerate(bars):
        y, width = TOP + ROW * k, scale * bar.length
        after = LABELS + width + 8
        if after < one < after + 34:  # the number would lie on the line
            after = one + 8
        lines += [
            text(LABELS - 10, y + 15, bar.label, colours.text, 'text-anchor="end"'),
            f'<rect x="{LABELS}" y="{y}" width="{width:.1f}" height="{ROW - 6}" rx="2" '
            f'fill="{colours.stage if bar.is_stage else colours.peer}"/>',
            text(after, y + 15, bar.number, colours.text if bar.speedup else colours.quiet),
        ]
    lines.append(
        f'<line x1="{one:.1f}" x2="{one:.1f}" y1="{TOP - 6}" y2="{height - 14}" stroke="{colours.line}" '
        'stroke-dasharray="3 3"/>'
    )
    return "\n".join([*lines, "</svg>", ""])


def text(x: float, y: float, words: str, colour: str, style: str = "") -> str:
    """One line of text."""
    return f'<text x="{x:.1f}" y="{y}" fill="{colour}" {style}>{words}</text>'.replace(" >", ">")


def write_charts(folder: Path = PICTURES) -> list[Path]:
    """Writes the chart for light and dark pages; returns the paths."""
    chart = LadderChart()
    paths = [folder / f"ladder-{theme}.svg" for theme in THEMES]
    for theme, path in zip(THEMES, paths, strict=True):
        path.write_text(draw_svg(chart.bars, chart.origin, theme), encoding="utf-8")
    return paths


if __name__ == "__main__":
    for path in write_charts():
        print(path.relative_to(ROOT))
