"""The chart of the ladder shows what was recorded."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from common.figures import ladder_chart
from common.figures.ladder_chart import Bar, LadderChart

ROWS = [
    {"name": "eager", "ratio": 1.0},
    {"name": "torch.compile", "ratio": 1.25},
    {"name": "torch.compile reduce-overhead", "ratio": 0.8},
    {"name": "stage 1", "ratio": 1.0},
    {"name": "stage 2", "ratio": 0.5},
]


def test_the_bars():
    assert ladder_chart.ladder_bars(ROWS) == [
        Bar("eager", 1.0, False),
        Bar("torch.compile reduce-overhead", 1.25, False),
        Bar("stage 2: C++ with ATen", 2.0, True),
    ]


def test_bars_are_as_long_as_their_numbers():
    chart = LadderChart()
    for theme in ladder_chart.THEMES:
        root = ElementTree.fromstring(ladder_chart.draw_svg(chart.bars, chart.origin, theme))
        widths = [float(one.get("width")) for one in root.iter("{http://www.w3.org/2000/svg}rect")]
        unit = widths[0] / chart.bars[0].speedup
        assert len(widths) == len(chart.bars) >= 7
        assert all(abs(width - unit * bar.speedup) < 0.2 for width, bar in zip(widths, chart.bars, strict=True))
        assert max(widths) + ladder_chart.LABELS < ladder_chart.WIDTH


def test_as_text_it_has_the_same_numbers():
    chart = LadderChart()
    assert re.findall(r"#+ (\d+\.\d\d)$", str(chart), re.MULTILINE) == [f"{bar.speedup:.2f}" for bar in chart.bars]


def test_the_files_are_up_to_date(tmp_path):
    for path in ladder_chart.write_charts(tmp_path):
        committed = ladder_chart.PICTURES / path.name
        assert path.read_text() == committed.read_text(), "run python -m common.figures.ladder_chart"
