"""The pictures of counts show the numbers and the threads that were counted."""

from __future__ import annotations

import numpy
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from common.cell import reference
from common.emulator import Array, Counted, collect_counts
from common.errors import UserError
from common.figures import access_maps, source_heatmap
from common.inline import inline
from common.measure import stage_counts
from support.counted import counted

# Stage 3's forward kernel over tensors in column-major order: neighbouring units lie a whole batch apart.
CUDA = """\
#include <cmath>
#include <cstdint>

__device__ float sigmoid(float z) { return 1 / (1 + std::exp(-z)); }
__device__ float elu(float z) { return z > 0 ? z : std::expm1(z); }

__global__ void forward_kernel(float* new_h,           // [S,B]
                               float* new_cell,        // [S,B]
                               float* gates,           // [3S,B]: input, output, candidate
                               const float* z,         // [3S,B], same order
                               const float* old_cell,  // [S,B]
                               int64_t batch_size, int64_t state_size) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= state_size) return;
  for (int64_t row = blockIdx.y; row < batch_size; row += gridDim.y) {
    const int64_t at = unit * batch_size + row;       // and not row * state_size + unit
    const int64_t of_gate = state_size * batch_size;  // from one gate to the next

    const float input_gate = sigmoid(z[at]);
    const float output_gate = sigmoid(z[at + of_gate]);
    const float candidate_cell = elu(z[at + 2 * of_gate]);
    gates[at] = input_gate;
    gates[at + of_gate] = output_gate;
    gates[at + 2 * of_gate] = candidate_cell;

    const float cell = old_cell[at] + candidate_cell * input_gate;
    new_cell[at] = cell;
    new_h[at] = std::tanh(cell) * output_gate;
  }
}

void launch_forward(float* new_h, float* new_cell, float* gates, const float* z, const float* old_cell,
                    int64_t batch_size, int64_t state_size) {
  const dim3 grid((state_size + 255) / 256, batch_size);
  forward_kernel<<<grid, 256>>>(new_h, new_cell, gates, z, old_cell, batch_size, state_size);
}
"""
CPP = """\
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

#include <vector>

void launch_forward(float* new_h, float* new_cell, float* gates, const float* z, const float* old_cell,
                    int64_t batch_size, int64_t state_size);

std::vector<at::Tensor> forward(const at::Tensor& z, const at::Tensor& old_cell) {
  at::Tensor gates = at::empty_like(z), new_h = at::empty_like(old_cell), new_cell = at::empty_like(old_cell);
  launch_forward(new_h.mutable_data_ptr<float>(), new_cell.mutable_data_ptr<float>(),
                 gates.mutable_data_ptr<float>(), z.const_data_ptr<float>(), old_cell.const_data_ptr<float>(),
                 old_cell.size(1), old_cell.size(0));
  return {new_h, new_cell, gates};
}
"""


@pytest.fixture
def made(tmp_path) -> Counted:
    return counted(tmp_path)


def words(axis: Axes) -> list[str]:
    return [text.get_text() for text in axis.texts]


def colours(axis: Axes) -> numpy.ndarray:
    return axis.images[0].get_array().data


def is_cut_off(figure: Figure) -> bool:
    figure.draw_without_rendering()
    (width, height), boxes = figure.bbox.size, [axis.get_tightbbox() for axis in figure.axes]
    return any(box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1 for box in boxes)


# The source ---------------------------------------------------------------------------------------------------


def test_the_source_with_its_numbers(made):
    figure = source_heatmap.draw_heatmap(made, "copy")
    [axis] = figure.axes
    shown = words(axis)
    assert shown[0] == "copy<T>, grid (2, 1, 1), block (64, 1, 1)"
    assert shown[1:6] == ["requests", "lanes", "sectors", "ideal", "conflicts"]
    numbered = [
        k for k, text in enumerate(shown) if text.isdigit() and shown[k + 1].startswith(("temp", "__gl", "}"))
    ]
    assert [shown[k] for k in numbered] == ["7", "8", "15"]  # from the template to the end, without the comment
    line = shown.index("  kept[threadIdx.x * 2 % 40] = x[row() + threadIdx.x];")
    assert shown[line + 1 : line + 6] == ["8", "20", "6", "3", "1"]
    line = shown.index("  y[row() + threadIdx.x] = kept[threadIdx.x];")
    assert shown[line + 1 : line + 6] == ["8", "20", "3", "3", "0"]
    assert shown[-1] == source_heatmap.NOTE
    assert not is_cut_off(figure)


def test_the_worse_the_redder(made):
    one, two = (source_heatmap.line_cells([row for row in made.rows if row.line == line], 8) for line in (12, 14))
    white = (1, 1, 1, 1)
    assert one["requests"].colour == two["requests"].colour != white
    assert one["lanes"].colour == two["lanes"].colour != white  # 20 of 32
    assert two["sectors"].colour == two["conflicts"].colour == two["ideal"].colour == white
    assert one["sectors"].colour[2] < 0.9
    assert source_heatmap.doublings(2, 8) == pytest.approx(1 / 3)
    assert source_heatmap.shade(source_heatmap.WASTE, 5) == source_heatmap.shade(source_heatmap.WASTE, 1)


def test_columns_without_numbers_are_left_out(made):
    made.rows = [row for row in made.rows if row.is_global]
    assert "conflicts" not in words(source_heatmap.draw_heatmap(made, "copy").axes[0])


def test_a_kernel_has_to_be_there(made):
    with pytest.raises(UserError, match="no kernel sum was launched; there are: copy<T>, other"):
        source_heatmap.draw_heatmap(made, "sum")
    with pytest.raises(UserError, match="name one kernel; there are: copy<T>, other"):
        source_heatmap.draw_heatmap(made)
    with pytest.raises(UserError, match="other accessed no memory, or its source is missing"):
        source_heatmap.draw_heatmap(made, "other")


def test_functions_end_where_they_end():
    lines = [
        "int one() { return 1; }",
        "// two",
        "int two() {",
        "",
        "  return 2;",
        "}",
        "struct S {",
        "  int x;",
        "};",
    ]
    assert source_heatmap.function_around(lines, 1) == range(1, 2)
    assert source_heatmap.function_around(lines, 5) == range(3, 7)
    assert source_heatmap.function_around(lines, 8) == range(7, 10)


# Access maps -------------------------------------------------------------------------------------------------


def test_lanes_have_their_colours(made):
    figure = access_maps.draw_access_map(made, "x", "copy")
    image = colours(figure.axes[0])
    assert image.shape == (2, 40, 3)
    for lane in range(32):
        assert tuple(image[0, lane]) == pytest.approx(access_maps.LANES(lane / 31)[:3])
    assert {tuple(pixel) for pixel in image[0, 32:]} == {to_rgb(access_maps.OTHER_WARPS)}
    assert (image[1] == 1).all()  # of the other block
    assert words(figure.axes[0]) == [str(lane) for lane in range(32)]
    assert figure.get_suptitle() == "x (2, 40): accesses by one block of copy<T>; in colour: warp 0, by lane"
    assert not is_cut_off(figure)


def test_another_warp_and_one_line(made):
    figure = access_maps.draw_access_map(made, "kept", "copy", warp=1, line=12)
    image = colours(figure.axes[0])
    assert image.shape == (2, 32, 3)  # bare memory, in rows of as many elements as there are banks
    assert words(figure.axes[0]) == [str(lane) for lane in range(8)]
    assert tuple(image[0, 24]) == pytest.approx(access_maps.LANES(0.0)[:3])  # 32 * 2 % 40
    assert figure.axes[0].get_xlabel() == "bank"
    assert "in line 12; in colour: warp 1" in figure.get_suptitle()


def test_sectors_end_where_memory_says():
    assert access_maps.sector_ends(Array("x", 4, 0, (2, 10), (10, 1)), (2, 10)) == [(8, 0), (6, 1)]
    assert access_maps.sector_ends(Array("x", 4, 8, (2, 10), (10, 1)), (2, 10)) == [(6, 0), (4, 1)]
    assert access_maps.sector_ends(Array("x", 8, 0, (3,), (5,)), (1, 3)) == [(1, 0), (2, 0)]


def test_what_was_not_accessed_is_an_error_that_helps(made):
    with pytest.raises(UserError, match="copy<T> does not access z; it accesses: x, kept, y"):
        access_maps.draw_access_map(made, "z", "copy")
    with pytest.raises(UserError, match="does not access x in line 14; it accesses: kept, y"):
        access_maps.draw_access_map(made, "x", "copy", line=14)
    made.accesses = []
    message = r"no thread of copy<T> was traced: count with collect_counts\(module, block=0\)"
    with pytest.raises(UserError, match=message):
        access_maps.draw_access_map(made, "x", "copy")


# Two versions -------------------------------------------------------------------------------------------------


@pytest.mark.needs("g++")
def test_row_major_against_column_major():
    module = inline("column_major", CPP, CUDA, ["forward"], target="emulator")
    inputs = stage_counts.make_inputs(16, 64)
    with collect_counts(module, block=0) as column_major:
        outputs = module.forward(inputs.z.T.contiguous(), inputs.old_cell.T.contiguous())
    for found, wanted in zip(outputs, reference.pointwise_forward(inputs.z, inputs.old_cell), strict=False):
        assert torch.allclose(found.T.double(), wanted, atol=1e-5)
    row_major = stage_counts.count_stage(3, 16, 64, block=0)
    per_request = [
        one.total("sectors", "forward_kernel") / one.total("requests", "forward_kernel")
        for one in (row_major, column_major)
    ]
    assert per_request == [4, 32]
    assert all(row.text and row.text in CUDA for row in column_major.rows)
    assert "    new_h[at] = std::tanh(cell) * output_gate;" in words(
        source_heatmap.draw_heatmap(column_major).axes[0]
    )

    figure = access_maps.draw_versions({"row-major": row_major, "column-major": column_major}, "forward_kernel", "z")
    first, second, moved, moved_too = figure.axes
    assert first.get_title(loc="left") == "row-major: one request to z"
    assert words(first) == ["32 elements in 4 sectors of 32 bytes"]
    assert words(second) == ["32 elements in 32 sectors of 32 bytes"]
    assert len(first.patches) == 4 * 9
    assert len(second.patches) == 32 * 9
    kib = 9 * 16 * 64 * 4 / 1024
    assert [bar.get_width() for bar in moved.patches] == [kib, kib]
    assert [bar.get_width() for bar in moved_too.patches] == [8 * kib, kib]
    assert not is_cut_off(figure)
