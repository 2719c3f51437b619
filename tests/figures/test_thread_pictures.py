"""The pictures of threads show who computes what, and the numbers that come of it."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from common.figures.diagrams import thread_cooperation, thread_grid


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def is_cut_off(figure: Figure) -> bool:
    """Whether a text is not within the picture."""
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    return any(box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height for box in boxes)


def test_threads_without_an_element_have_a_cross():
    figure = thread_grid.draw_thread_grid(count=10, block_size=4)
    shown = words(figure)
    assert [word for word in shown if word.startswith("blockIdx")] == [f"blockIdx.x = {k}" for k in range(3)]
    assert shown.count("×") == 2
    assert {"8", "9"} <= set(shown)
    assert "10" not in shown
    assert not is_cut_off(figure)


def test_the_owner_of_each_element():
    owners = [[[unit // 4, row, unit % 4] for unit in range(6)] for row in range(2)]
    owners[1][5] = [-1, -1, -1]
    figure = thread_grid.draw_owners(owners, row_name="turn")
    assert words(figure) == [
        "turn 0", "block (0, 0)", "0", "1", "2", "3", "block (1, 0)", "0", "1",
        "turn 1", "block (0, 1)", "0", "1", "2", "3", "block (1, 1)", "0",
    ]  # fmt: skip
    colours = [box.get_facecolor() for box in figure.axes[0].patches]
    assert colours[0] == colours[3] != colours[4]
    assert not is_cut_off(figure)


def test_shuffles_add_up_all_lanes():
    values = (3, 1, 4, 1, 5, 9, 2, 6)
    steps = thread_cooperation.shuffle_steps(values)
    assert [apart for apart, _ in steps] == [0, 4, 2, 1]
    assert steps[0][1] == list(values)
    assert steps[1][1][:4] == [8, 10, 6, 7]
    assert steps[1][1][4:] == [10, 18, 4, 12], "beyond the last lane a shuffle returns the lane's own value"
    assert steps[-1][1][0] == sum(values)
    shown = words(thread_cooperation.draw_shuffle_sum(values))
    assert [word for word in shown if word.isdigit()] == [str(value) for _, row in steps for value in row]


def test_each_update_follows_from_the_one_before():
    _, _, writes = zip(*thread_cooperation.LOST_UPDATE, strict=True)
    assert writes == (0, 0, 0 + 3, 0 + 5)
    assert [memory for *_, memory in thread_cooperation.ATOMIC_UPDATE] == [3, 3 + 5]
    shown = words(thread_cooperation.draw_lost_update())
    assert {"reads 0", "writes 0 + 3", "writes 0 + 5", "3 is lost", "atomicAdd 3", "atomicAdd 5"} <= set(shown)


def test_a_barrier_comes_after_the_last_write():
    [axes] = thread_cooperation.draw_barrier().axes
    boxes = [box.get_extents().transformed(axes.transData.inverted()) for box in axes.patches]
    (early, late), writes = (boxes[4], boxes[9]), boxes[5:9]
    assert early.x0 < max(box.x1 for box in boxes[:4])
    assert late.x0 > max(box.x1 for box in writes)


@pytest.mark.parametrize("draw", ["levels", "shuffle_sum", "block_sum", "barrier", "lost_update"])
def test_everything_is_within_the_picture(draw):
    assert not is_cut_off(getattr(thread_cooperation, f"draw_{draw}")())
