"""The chart of the ladder shows what was recorded."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from common.figures import ladder_chart
from common.figures.ladder_chart import Bar, LadderChart
from support.measurement import measurement

RATIOS = {"eager": 1.0, "torch.compile": 1.25, "torch.compile reduce-overhead": 0.8, "stage 1": 1.0, "stage 2": 0.5}
GRAPHS = {"CUDA graph of stage 2": 0.5, "CUDA graph of eager": 0.4, "CUDA graph of torch.compile": 0.25}


def rows_of(ratios: dict[str, float], device: str) -> list[dict]:
    return [{"name": name, "ratio": ratio, "device": device} for name, ratio in ratios.items()]


def test_the_bars():
    first = [Bar("eager", 1.0, False), Bar("torch.compile reduce-overhead", 1.25, False)]
    graphs = [Bar("CUDA graph of eager", 2.5, False), Bar("CUDA graph of torch.compile", 4.0, False)]
    last = [Bar("stage 2: C++ with ATen", 2.0, True)]
    assert ladder_chart.ladder_bars(rows_of(RATIOS, "cpu")) == [*first, *last]
    assert ladder_chart.ladder_bars(rows_of(RATIOS | GRAPHS, "cuda")) == [*first, *graphs, *last]


def test_a_peer_that_was_not_measured_has_no_bar_but_is_named():
    """As in a record from before it was measured."""
    chart = LadderChart(measurement(gpu="NVIDIA H200"), "cuda")
    assert str(chart).count("CUDA graph of eager") == 1
    assert re.findall(r"CUDA graph of [\w.]+ +(.*)$", str(chart), re.MULTILINE) == ["not measured"] * 2
    root = ElementTree.fromstring(ladder_chart.draw_svg(chart.bars, chart.origin))
    said = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert said.count("not measured") == 2


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
    assert re.findall(r"#+ (\d+\.\d\d)$", str(chart), re.MULTILINE) == [bar.number for bar in chart.bars]


def test_the_files_are_up_to_date(tmp_path):
    for path in ladder_chart.write_charts(tmp_path):
        committed = ladder_chart.PICTURES / path.name
        assert path.read_text() == committed.read_text(), "run python -m common.figures.ladder_chart"
