"""The pictures show the numbers of a result: positions, lengths, labels, and who did not run."""

import itertools

import pytest
from matplotlib.colors import to_hex, to_rgb

from common.errors import UserError
from common.figures import plots
from common.results import records
from common.results.rows import unique
from support.measurement import measurement


@pytest.fixture
def result() -> dict:
    return measurement("h200", gpu="NVIDIA H200")


def words(axis) -> list[str]:
    return [text.get_text() for text in axis.texts]


def names(axis) -> list[str]:
    return [text.get_text() for text in axis.get_yticklabels()]


def test_times_are_the_lengths_of_the_bars(result):
    figure = plots.plot_times(result, "cuda", "parameters")
    first, second = figure.axes
    assert first.get_title(loc="left") == "B16 I32 S128"
    assert second.get_title(loc="left") == "B4096 I1024 S1024"
    assert names(first) == ["eager", "torch.compile", "stage 1", "stage 2"]
    assert first.get_xlabel() == "microseconds"
    bars = first.patches
    assert [bar.get_width() for bar in bars] == [100, 300, 125, 375, 100, 300, 80, 240]  # forward, what backward adds
    assert [bar.get_x() for bar in bars[1::2]] == [100, 125, 100, 80]
    assert words(first)[-1].strip() == "80 / 320"
    assert words(second)[0].strip() == "1,000 / 4,000"
    title = figure.get_suptitle()
    assert "NVIDIA H200, CUDA tensors, torch 2.15.0" in title
    assert "float32 (IEEE), gradients for weights and bias" in title


def test_whiskers_are_the_quartiles(result):
    axis = plots.plot_times(result, "cpu").axes[0]
    ends = sorted(segment[:, 0].tolist() for lines in axis.collections for segment in lines.get_segments())
    assert [95, 120] in [[round(x) for x in pair] for pair in ends]  # eager, forward
    assert [380, 480] in [[round(x) for x in pair] for pair in ends]  # eager, forward+backward
    assert len(ends) == 8
    assert all(axis.get_xlim()[1] > end for _, end in ends)


def test_the_threads_are_named_on_a_cpu(result):
    assert "Abacus 9000, CPU tensors, 2 threads" in plots.plot_times(result, "cpu").get_suptitle()


def test_who_did_not_run_keeps_a_line(result):
    result["rows"] = [row for row in result["rows"] if row["name"] != "torch.compile" or row["B"] != 4096]
    first, second = plots.plot_times(result, "cuda").axes
    assert len(first.patches) == 8
    assert len(second.patches) == 6
    assert " not run" in words(second)


def test_speedups_are_eagers_time_over_the_implementations(result):
    first, _ = plots.plot_speedups(result, "cuda").axes
    assert names(first) == ["torch.compile", "stage 1", "stage 2"]
    reference, *marks = first.lines
    assert set(reference.get_xdata()) == {1}
    assert [round(float(mark.get_xdata()[0]), 3) for mark in marks] == [0.8, 1, 1.25, 0.8, 1, 1.25]
    assert words(first)[:3] == ["0.80", "1.00", "1.25"]
    assert [to_hex(mark.get_markerfacecolor()) for mark in marks[:3]] == ["#ffffff"] * 3  # forward is hollow
    assert "forward+backward" in [text.get_text() for text in figure_legend(first)]


def figure_legend(axis) -> list:
    return [text for legend in axis.figure.legends for text in legend.get_texts()]


def test_saved_bytes_choose_their_unit(result):
    for row in result["rows"]:
        if row["B"] == 4096:
            row["saved_bytes"] *= 1024
    first, second = plots.plot_saved_bytes(result, "cuda").axes
    assert [bar.get_width() for bar in first.patches] == [64, 32, 64, 48]
    assert [bar.get_width() for bar in second.patches] == [64, 32, 64, 48]
    assert (first.get_xlabel(), second.get_xlabel()) == ("KiB", "MiB")


def test_build_times(result):
    figure = plots.plot_build_seconds([measurement(), result])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["this machine", "h200"]
    assert [bar.get_width() for axis in figure.axes for bar in axis.patches] == [12.5, 12.5]
    assert names(figure.axes[0]) == ["stage 2"]
    assert plots.plot_build_seconds([measurement(ratios={"eager": 1, "stage 1": 1})]) is None


def test_machines_stand_side_by_side(result):
    figure = plots.plot_machines([measurement(), result])
    titles = [axis.get_title(loc="left").replace("\n", " ") for axis in figure.axes]
    assert titles == [
        "this machine: Abacus 9000, CPU tensors, 2 threads",
        "Abacus 9000, CPU tensors, 2 threads",
        "NVIDIA H200, CUDA tensors",
    ]
    assert "B16 I32 S128" in figure.get_suptitle()


def test_every_recorded_machine_is_drawn():
    recorded = records.read_recorded()
    figure = plots.plot_machines(recorded)
    figure.draw_without_rendering()
    titles = [axis._left_title.get_window_extent() for axis in figure.axes]
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(titles)), "no title covers another"
    assert titles[-1].x1 < figure.bbox.x1
    assert len(figure.axes) == sum(len(unique(found["rows"], "device")) for found in recorded)
    for found in recorded:
        for device in unique(found["rows"], "device"):
            plots.plot_ladder(found, device)


def test_an_implementation_under_a_cuda_graph_follows_it():
    names = ["CUDA graph of stage 6", "stage 6", "Triton", "CUDA graph of eager", "eager", "torch.compile"]
    order = sorted(names, key=plots.ladder_position)
    assert order == ["eager", "CUDA graph of eager", "torch.compile", "Triton", "stage 6", "CUDA graph of stage 6"]
    assert plots.colour("CUDA graph of stage 6") == plots.colour("stage 6")


def test_the_ladder_has_a_rung_for_each_implementation_and_a_mark_for_each_size(result):
    forward, both = plots.plot_ladder(result, "cuda").axes
    assert names(forward) == ["eager", "torch.compile", "stage 1", "stage 2"]
    _, *marks = both.lines
    assert [float(mark.get_xdata()[0]) for mark in marks] == [1, 0.8, 1, 1.25] * 2
    assert {mark.get_marker() for mark in marks} == {"o", "s"}
    assert [text.get_text() for text in figure_legend(forward)] == ["B16 I32 S128", "B4096 I1024 S1024"]


def test_nothing_measured_is_a_clear_error():
    with pytest.raises(UserError, match="this machine: nothing was measured on CUDA tensors with gradients for all"):
        plots.plot_times(measurement(), "cuda")


def test_neighbouring_implementations_have_different_colours():
    implementations = [*plots.COLOURS, *(f"stage {number}" for number in range(1, 6))]
    for one, other in itertools.pairwise(implementations):
        distance = sum(
            (a - b) ** 2 for a, b in zip(to_rgb(plots.colour(one)), to_rgb(plots.colour(other)), strict=True)
        )
        assert distance > 0.05, (one, other)


def test_nothing_is_cut_off(result):
    figures = [
        plots.plot_times(result, "cuda"),
        plots.plot_speedups(result),
        plots.plot_saved_bytes(result),
        plots.plot_ladder(result),
    ]
    for figure in [*figures, plots.plot_machines([measurement(), result]), plots.plot_build_seconds([result])]:
        figure.draw_without_rendering()
        width, height = figure.bbox.size
        for axis in figure.axes:
            box = axis.get_tightbbox()
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= width + 1
            assert box.y1 <= height + 1
