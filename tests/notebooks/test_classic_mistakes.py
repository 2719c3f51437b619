"""The mistakes that notebooks 03 and 04 make on purpose: each is reported, and once it is fixed nothing is.

The kernels are the notebooks' own texts, so that what a learner sees there is what is tested here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from support.labs import ACCESSORS, POINTERS, accessors, checks, crashing, guards, lab, launches, marks, report, who
from support.proofs.files import notebook_files

NAMES = ("03_cuda_pointers", "03b_kernel_in_torch", "03c_threads_together", "04_cuda_accessors")
pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof("claims of notebooks", files=notebook_files(*NAMES)),
]


def line(text: str, code: str) -> int:
    """The number of the only line of a `.cu` that contains `code`, as the reports count."""
    (number,) = [k for k, row in enumerate(text.lstrip("\n").splitlines(), start=1) if code in row]
    return number


@pytest.fixture
def silent(capfd) -> Callable:
    """Calls what must work, without a word on stderr."""

    def call(kernel: Callable, *arguments: object) -> object:
        capfd.readouterr()
        result = kernel(*arguments)
        assert capfd.readouterr().err == ""
        return result

    return call


def test_an_edit_changes_the_line(tmp_path):
    assert line("\nfirst\nsecond\n", "second") == 2


# Places that are not the kernel's ------------------------------------------------------------------------------


@pytest.mark.syllabus("3.3e", "3.3f", "3.8b")
@pytest.mark.parametrize("guard", [0, 1], ids=["no guard", "a guard that is always true"])
def test_a_guard_that_keeps_nobody_out(guard, silent):
    memory = torch.full((8,), -1.0)
    said = report(guards().guard, memory[:5], guard, 8)
    assert f"writes outside of row, in guards.cu:{line(POINTERS['GUARD_CU'], 'row[col] = col')} (memory)" in said
    assert "element 5 of row, a tensor of shape (5,), float" in said
    assert "3 times, by 3 threads of 1 block; first block (0, 0, 0), thread (5, 0, 0)" in said
    assert memory.tolist() == [0, 1, 2, 3, 4, -1, -1, -1], "nothing was written behind the row"
    silent(guards().guard, memory[:5], 2, 8)


@pytest.mark.syllabus("3.3c", "3.8b")
def test_an_index_of_32_bits(silent):
    place, gates = torch.zeros(2, dtype=torch.int64), torch.empty(65535, 3 * 12000, dtype=torch.int8)
    said = report(marks().mark, place, gates, False)
    assert f"in marks.cu:{line(POINTERS['PLACE_CU'], 'in_64_bits ? wide : narrow')} (memory)" in said
    assert "block (0, 65534, 0), thread (0, 0, 0)" in said
    silent(marks().mark, place, gates, True)
    assert place.tolist() == [65534 * 36000 - 2**32, 65534 * 36000]
    assert gates[-1, 0] == 1


@pytest.mark.syllabus("3.3b")
def test_a_batch_beyond_grid_y(monkeypatch, capfd, silent):
    monkeypatch.setenv("EMULATOR_DEVICE", "maxGridSize.y=63")
    written = torch.full((64, 2, 3), -1)
    assert "invalid argument" in report(who("MATRIX").record, written, 32, 0)
    assert "the launch of matrix_kernel is refused: grid.y is 64, at most 63" in capfd.readouterr().err
    silent(who("MATRIX").record, written[:63], 32, 0)
    silent(who("ROWS").record, written, 32, 63)
    assert (written >= 0).all()


@pytest.mark.syllabus("3.1e")
def test_an_argument_that_nobody_checked(silent):
    grad_h, memory = torch.ones(2, 4), torch.zeros(8)
    said = report(checks().d_cell, grad_h, memory[:4].view(1, 4))
    assert f"reads outside of new_cell, in checks.cu:{line(POINTERS['CHECKS_CU'], 'std::tanh(new_cell[k])')}" in said
    assert "new_cell, a tensor of shape (1, 4), float" in said
    assert "4 times, by 4 threads of 1 block; first block (0, 0, 0), thread (4, 0, 0)" in said
    silent(checks().d_cell, grad_h, memory.view(2, 4))


@pytest.mark.syllabus("3.1d")
def test_checks_say_what_is_wrong_with_which_argument(silent):
    grad_h, new_cell = torch.ones(2, 4), torch.zeros(2, 4)
    for d_cell in (checks().d_cell, checks().checked_d_cell):
        with pytest.raises(RuntimeError, match=r"^grad_h must be contiguous"):
            d_cell(grad_h.t(), new_cell.t())
        with pytest.raises(RuntimeError, match=r"^grad_h must be a CUDA tensor"):
            d_cell(grad_h.to("meta"), new_cell)
    for wrong, words in (
        (new_cell[:1], r"has shape \[1, 4\], expected \[2, 4\]"),
        (new_cell.double(), "has dtype Double, expected Float"),
        (new_cell.to("meta"), "is on meta, expected cpu"),
        (torch.zeros(4, 2).t(), "is not contiguous"),
    ):
        with pytest.raises(RuntimeError, match=f"new_cell {words}"):
            checks().checked_d_cell(grad_h, wrong)
    assert torch.equal(silent(checks().checked_d_cell, grad_h, new_cell), grad_h)


@pytest.mark.syllabus("3.6d", "3.8b")
def test_a_null_pointer():
    said = report(crashing().crash)
    assert f"through a null pointer, in crashing.cu:{line(POINTERS['CRASH_CU'], 'nowhere[0] = 1')} (memory)" in said
    assert "2 threads of 2 blocks; first block (0, 0, 0), thread (3, 0, 0)" in said


@pytest.mark.syllabus("3.6c")
def test_a_launch_that_nobody_checked(silent):
    x = torch.zeros(4)
    launches().add_one_unchecked(x, 2048)
    said = report(launches().add_one, x, 256)
    assert "the launch of add_one_kernel is refused: it asks for 2048 threads per block" in said
    assert f"in launches.cu:{line(POINTERS['LAUNCHES_CU'], 'add_one_kernel<<<')}" in said
    silent(launches().add_one, x, 256)
    assert x.tolist() == [1, 1, 1, 1]


@pytest.mark.syllabus("4.2d")
def test_an_accessor_s_index_outside_of_its_dimension(silent):
    memory = torch.arange(8.0)
    said = report(accessors("bounds").element, torch.zeros(1), memory[:4], 6)
    assert f"in bounds.cu:{line(ACCESSORS['BOUNDS_CU'], 'out[0] = x[k]')}" in said
    assert re.search(r"\bx\b.*\(4,\)", said), said
    silent(accessors("bounds").element, torch.zeros(1), memory[:4], 3)


@pytest.mark.syllabus("4.2d")
def test_a_fourth_gate_is_found_inside_of_the_tensor(silent):
    gates, out = torch.arange(24.0).view(2, 3, 4), torch.zeros(2, 4)
    said = report(accessors("bounds").gate, out, gates, 3)
    assert f"in bounds.cu:{line(ACCESSORS['BOUNDS_CU'], 'gates[row][gate][unit];')}" in said
    assert re.search(r"\bgates\b.*\(2, 3, 4\)", said), said
    silent(accessors("bounds").gate, out, gates, 2)
    assert torch.equal(out, gates[:, 2])


@pytest.mark.syllabus("4.2c")
def test_a_strided_tensor_that_is_walked_as_if_contiguous(silent):
    wide, one, tall = torch.arange(24.0).view(3, 8), torch.ones(1), torch.arange(12.0).view(4, 3)
    where = f"x, in strided.cu:{line(ACCESSORS['STRIDED_CU'], 'out[k] = x[k]')} (memory)"
    assert f"reads outside of {where}" in report(accessors("strided").walk, torch.empty(3, 4), wide[:, ::2])
    assert f"reads past the end of {where}" in report(accessors("strided").walk, torch.empty(3, 4), one.expand(3, 4))
    out = torch.empty(3, 4)
    silent(accessors("strided").walk, out, tall.t())
    assert not torch.equal(out, tall.t()), "no check of memory can see this one"
    for x in (wide[:, ::2], one.expand(3, 4), tall.t()):
        silent(accessors("strided").copy, out, x)
        assert torch.equal(out, x)


# Threads that get into each other's way --------------------------------------------------------------------------


def edited(text: str, old: str, new: str) -> str:
    """A text with one change, which must be possible in one place only."""
    assert text.count(old) == 1
    return text.replace(old, new)


D_Z = torch.randn(200, 210)


@pytest.mark.syllabus("3.10a", "3.10b", "3.10c", "3.10d")
@pytest.mark.parametrize("name", ["column", "warp", "block", "grid"])
@pytest.mark.parametrize("shape", [(200, 210), (20, 210), (1, 1), (513, 32)])
def test_four_sums_over_the_batch(name, shape, silent):
    d_z, d_bias = torch.randn(shape), torch.zeros(1, shape[1])
    silent(lab(f"by_{name}", POINTERS[f"{name.upper()}_CU"]).run, d_bias, d_z)
    torch.testing.assert_close(d_bias[0], d_z.sum(dim=0), atol=1e-4, rtol=1e-5)


@pytest.mark.syllabus("3.10a")
def test_lanes_that_return_before_a_shuffle():
    wrong = edited(POINTERS["WARP_CU"], "  float sum = 0;\n", "  if (lane >= B) return;\n  float sum = 0;\n")
    said = report(lab("by_warp", wrong).make, D_Z[:20], 1, 210)
    assert "lane 4 reads the value of lane 20 with __shfl_down_sync, but that lane has returned" in said
    assert f"in by_warp.cu:{line(wrong, '__shfl_down_sync')}:" in said


@pytest.mark.syllabus("3.10b")
def test_an_array_of_its_own_for_each_thread(silent):
    private = edited(POINTERS["BLOCK_CU"], "__shared__ float partial[8][32];", "float partial[8][32] = {};")
    d_bias = silent(lab("by_block", private).make, D_Z, 1, 210)
    torch.testing.assert_close(d_bias[0], D_Z[::8].sum(dim=0), atol=1e-4, rtol=1e-5)


@pytest.mark.syllabus("3.10c")
def test_a_block_s_sum_without_its_barrier(monkeypatch):
    wrong = edited(POINTERS["BLOCK_CU"], "  __syncthreads();\n", "")
    said = report(lab("by_block", wrong).make, D_Z, 1, 210)
    assert f"race on partial[1][0], shared memory, in by_block.cu:{line(wrong, 'partial[warp][lane] = sum')}" in said
    assert f"read it in by_block.cu:{line(wrong, 'partial[k][lane]')}" in said
    assert "there is no __syncthreads between the two" in said
    monkeypatch.setenv("EMULATOR_CHECKS", "none")
    assert lab("by_block", wrong).make(D_Z, 1, 210).isnan().any()


@pytest.mark.syllabus("3.10c")
def test_threads_that_return_above_a_barrier(capfd):
    loop = POINTERS["BLOCK_CU"].partition("  if (column < C) {\n")[2].partition("  }\n")[0]
    wrong = edited(POINTERS["BLOCK_CU"], f"  if (column < C) {{\n{loop}  }}\n", f"  if (column >= C) return;\n{loop}")
    lab("by_block", wrong).make(D_Z, 1, 210)
    said = capfd.readouterr().err
    assert "112 of 256 threads ended before the __syncthreads that the others reached" in said


@pytest.mark.syllabus("3.10d")
def test_blocks_that_add_without_an_atomic():
    wrong = edited(POINTERS["GRID_CU"], "atomicAdd(&d_bias[column], total)", "d_bias[column] += total")
    said = report(lab("by_grid", wrong).run, torch.zeros(1, 210), D_Z)
    assert f"race on element [0, 0] of d_bias, in by_grid.cu:{line(wrong, 'd_bias[column] += total')} (races)" in said
    assert "block (0, 1, 0), thread (0, 0, 0) reads it, block (0, 0, 0), thread (0, 0, 0) wrote it" in said


@pytest.mark.syllabus("3.8b")
def test_a_barrier_too_few(silent):
    wrong, x = POINTERS["SUM_CU"], torch.arange(64.0).view(1, 64)
    said = report(lab("sum", wrong).make, x, 1, 1)
    assert f"sum.cu:{line(wrong, 'partial[t + half];')} (races)" in said
    assert re.search(r"race on partial\b", said), said
    fixed = wrong.replace("[t + half];\n", "[t + half];\n    __syncthreads();\n")
    assert silent(lab("sum", fixed).make, x, 1, 1).item() == x.sum()


def test_a_barrier_inside_the_if_is_a_warning(capfd):
    inside, x = "{ partial[t] += partial[t + half]; __syncthreads(); }", torch.arange(64.0).view(1, 64)
    wrong = POINTERS["SUM_CU"].replace("partial[t] += partial[t + half];", inside)
    assert lab("sum", wrong).make(x, 1, 1).item() == x.sum()
    said = capfd.readouterr().err
    assert "warning: 32 of 64 threads ended before the __syncthreads that the others reached" in said
    assert f"in sum.cu:{line(wrong, inside)}:" in said


@pytest.mark.syllabus("3.8b")
def test_rows_that_overlap(silent):
    wrong, x = POINTERS["SPLIT_CU"], torch.randn(3, 40)
    said = report(lab("split", wrong).make, x, 3, 120)
    assert f"split.cu:{line(wrong, 'row * S + gate * S + unit')} (races)" in said
    assert "gates" in said
    fixed = wrong.replace("row * S + gate", "row * 3 * S + gate")
    assert torch.equal(silent(lab("split", fixed).make, x, 3, 120), x.repeat(1, 3))


# Memory that was never written --------------------------------------------------------------------------------------


@pytest.mark.syllabus("3.7d", "3.8b")
def test_a_sum_that_starts_from_anything(silent):
    text, x = POINTERS["D_BIAS_CU"], torch.randn(3, 40)
    said = report(lab("d_bias", text).make, x, 1, 40)
    assert f"in d_bias.cu:{line(text, 'atomicAdd')} (initialisation)" in said
    assert "d_bias, a tensor of shape (1, 40), float" in said
    zeros = torch.zeros(1, 40)
    silent(lab("d_bias", text).run, zeros, x)
    torch.testing.assert_close(zeros[0], x.sum(dim=0))


@pytest.mark.syllabus("3.7d", "3.8b")
def test_results_that_nobody_wrote(silent):
    wrong, x = POINTERS["SQUARE_CU"], torch.randn(3, 40)
    stale = x * x
    silent(lab("square", wrong).run, stale, x)
    assert torch.equal(stale, x * x), "a test that reuses its output sees nothing"
    made = silent(lab("square", wrong).make, x, 3, 40)
    assert made.view(-1).isnan().tolist() == [k >= 64 for k in range(120)]
    said = report(lab("square", wrong).run, stale, made.view(1, 120)[:, 56:])
    assert f"in square.cu:{line(wrong, 'x[k] * x[k]')} (initialisation)" in said
    assert "x, a tensor of shape (1, 64), float" in said
    assert "56 times, by 56 threads of 1 block; first block (0, 0, 0), thread (8, 0, 0)" in said
    fixed = wrong.replace("B * S / 64", "(B * S + 63) / 64")
    assert torch.equal(silent(lab("square", fixed).make, x, 3, 40), x * x)
