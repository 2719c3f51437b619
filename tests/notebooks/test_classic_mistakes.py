"""The mistakes that notebooks 03 and 04 make on purpose: each is reported, and once it is fixed nothing is.

The kernels are the notebooks' own texts, so that what a learner sees there is what is tested here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from support.labs import ACCESSORS, POINTERS, checks, lab, places, report, who
from support.proofs.files import notebook_files

pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof("claims of notebooks", files=notebook_files("03_cuda_pointers", "04_cuda_accessors")),
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
    said = report(who().guard, memory[:5], guard, 8)
    assert f"writes outside of row, in who.cu:{line(POINTERS['WHO_CU'], 'row[col] = col')} (memory)" in said
    assert "element 5 of row, a tensor of shape (5,), float" in said
    assert "3 times, by 3 threads of 1 block; first block (0, 0, 0), thread (5, 0, 0)" in said
    assert memory.tolist() == [0, 1, 2, 3, 4, -1, -1, -1], "nothing was written behind the row"
    silent(who().guard, memory[:5], 2, 8)


@pytest.mark.syllabus("3.3c", "3.8b")
def test_an_index_of_32_bits(silent):
    place, gates = torch.zeros(2, dtype=torch.int64), torch.empty(65535, 3 * 12000, dtype=torch.int8)
    said = report(who().mark, place, gates, False)
    assert f"in who.cu:{line(POINTERS['WHO_CU'], 'in_64_bits ? wide : narrow')} (memory)" in said
    assert "block (0, 65534, 0), thread (0, 0, 0)" in said
    silent(who().mark, place, gates, True)
    assert place.tolist() == [65534 * 36000 - 2**32, 65534 * 36000]
    assert gates[-1, 0] == 1


@pytest.mark.syllabus("3.3b")
def test_a_batch_beyond_grid_y(monkeypatch, capfd, silent):
    monkeypatch.setenv("EMULATOR_DEVICE", "maxGridSize.y=63")
    written = torch.full((64, 2, 3), -1)
    assert "invalid argument" in report(who().matrix, written, 32)
    assert "the launch of matrix_kernel is refused: grid.y is 64, at most 63" in capfd.readouterr().err
    silent(who().matrix, written[:63], 32)
    silent(who().rows, written, 32, 63)
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
    said = report(checks().crash)
    assert f"through a null pointer, in checks.cu:{line(POINTERS['CHECKS_CU'], 'nowhere[0] = 1')} (memory)" in said
    assert "2 threads of 2 blocks; first block (0, 0, 0), thread (3, 0, 0)" in said


@pytest.mark.syllabus("3.6c")
def test_a_launch_that_nobody_checked(silent):
    x = torch.zeros(4)
    checks().add_one_unchecked(x, 2048)
    said = report(checks().add_one, x, 256)
    assert "the launch of add_one_kernel is refused: it asks for 2048 threads a block" in said
    assert f"in checks.cu:{line(POINTERS['CHECKS_CU'], 'add_one_kernel<<<')}" in said
    silent(checks().add_one, x, 256)
    assert x.tolist() == [1, 1, 1, 1]


@pytest.mark.syllabus("4.2d")
def test_an_accessor_s_index_outside_of_its_dimension(silent):
    memory = torch.arange(8.0)
    said = report(places().element, torch.zeros(1), memory[:4], 6)
    assert f"in places.cu:{line(ACCESSORS['PLACES_CU'], 'out[0] = x[k]')}" in said
    assert re.search(r"\bx\b.*\(4,\)", said), said
    silent(places().element, torch.zeros(1), memory[:4], 3)


@pytest.mark.syllabus("4.2d")
def test_a_fourth_gate_is_found_inside_of_the_tensor(silent):
    gates, out = torch.arange(24.0).view(2, 3, 4), torch.zeros(2, 4)
    said = report(places().gate, out, gates, 3)
    assert f"in places.cu:{line(ACCESSORS['PLACES_CU'], 'gates[row][gate][unit];')}" in said
    assert re.search(r"\bgates\b.*\(2, 3, 4\)", said), said
    silent(places().gate, out, gates, 2)
    assert torch.equal(out, gates[:, 2])


@pytest.mark.syllabus("4.2c")
def test_a_strided_tensor_that_is_walked_as_if_contiguous(silent):
    wide, one, tall = torch.arange(24.0).view(3, 8), torch.ones(1), torch.arange(12.0).view(4, 3)
    where = f"x, in places.cu:{line(ACCESSORS['PLACES_CU'], 'out[k] = x[k]')} (memory)"
    assert f"reads outside of {where}" in report(places().walk, torch.empty(3, 4), wide[:, ::2])
    assert f"reads past the end of {where}" in report(places().walk, torch.empty(3, 4), one.expand(3, 4))
    out = torch.empty(3, 4)
    silent(places().walk, out, tall.t())
    assert not torch.equal(out, tall.t()), "no check of memory can see this one"
    for x in (wide[:, ::2], one.expand(3, 4), tall.t()):
        silent(places().copy, out, x)
        assert torch.equal(out, x)


# Threads that get into each other's way --------------------------------------------------------------------------


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
    assert "warning: 32 of 64 threads ended without the __syncthreads that the others came to" in said
    assert f"in sum.cu:{line(wrong, inside)}:" in said


@pytest.mark.syllabus("3.8b")
def test_rows_that_overlap(silent):
    wrong, x = POINTERS["SPLIT_CU"], torch.randn(3, 40)
    said = report(lab("split", wrong).make, x, 3, 120)
    assert f"split.cu:{line(wrong, 'row * S + gate * S + unit')} (races)" in said
    assert "gates" in said
    fixed = wrong.replace("row * S + gate", "row * 3 * S + gate")
    assert torch.equal(silent(lab("split", fixed).make, x, 3, 120), x.repeat(1, 3))


# Memory that nobody wrote ----------------------------------------------------------------------------------------


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
