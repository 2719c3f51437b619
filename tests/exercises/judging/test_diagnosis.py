"""What a wrong result looks like: each kind of mistake is named, and nothing is said where nothing is known."""

from __future__ import annotations

import math

import pytest
import torch

from common.cell.case import Case
from common.exercises.failures import Failure
from common.exercises.judging.assertions import same
from common.exercises.judging.cell import agree
from common.exercises.judging.diagnosis import describe_difference, recognise_mistake

ROWS, COLUMNS = 6, 70


@pytest.fixture
def want():
    return torch.randn(ROWS, COLUMNS, dtype=torch.float64, generator=torch.Generator().manual_seed(7))


def part(want: torch.Tensor, rows: slice, columns: slice, value: float = 0.0) -> torch.Tensor:
    changed = want.clone()
    changed[rows, columns] = value
    return changed


ALL = slice(None)
MISTAKES = {
    "narrowed": (lambda w: w.float().double(), "right to 7 digits, so something is computed in float32"),
    "zeros": (torch.zeros_like, "all zeros: nothing was computed"),
    "a constant": (lambda w: torch.full_like(w, 0.25), "the same number, 0.25, everywhere"),
    "twice": (lambda w: 2 * w, "everything is 2 times what it should be"),
    "a third": (lambda w: w / 3, "everything is 1/3 times what it should be"),
    "the sign": (lambda w: -w, "the sign is wrong"),
    "an offset": (lambda w: w + 3, "everywhere too large by 3"),
    "the other way": (lambda w: w - 0.5, "everywhere too small by 0.5"),
    "wrong order in memory": (lambda w: w.t().reshape(w.shape), "transposed: rows and columns are swapped"),
    "and back": (lambda w: w.reshape(w.t().shape).t(), "transposed: rows and columns are swapped"),
    "shifted": (lambda w: w.roll(1, 1), "shifted by one column"),
    "shifted rows": (lambda w: w.roll(-1, 0), "shifted by one row"),
    "reversed": (lambda w: w.flip(1), "the columns are in reverse order"),
    "reversed rows": (lambda w: w.flip(0), "the rows are in reverse order"),
    "thirds": (lambda w: torch.cat([w[2:4], w[:2], w[4:]]), "the thirds are in the wrong order: 1, 0, 2"),
    "first 32": (
        lambda w: part(w, ALL, slice(32, None)),
        "only the first 32 columns are right, those from 32 on are zero. Which threads compute those from 32 on?",
    ),
    "first 5": (
        lambda w: part(w, ALL, slice(5, None), 9.0),
        "only the first 5 columns are right, those from 5 on are wrong",
    ),
    "last column": (lambda w: part(w, ALL, slice(-1, None)), "only the last column is zero"),
    "first column": (lambda w: part(w, ALL, slice(0, 1), 9.0), "only the first column is wrong"),
    "rows": (lambda w: part(w, slice(2, None), ALL), "only the first 2 rows are right, those from 2 on are zero"),
    "first rows": (lambda w: part(w, slice(0, 4), ALL, 9.0), "the first 4 rows are wrong, the others right"),
    "every other": (lambda w: part(w, ALL, slice(1, None, 2), 9.0), "every second column is wrong, from 1 on"),
    "every third": (lambda w: part(w, ALL, slice(0, None, 3), 9.0), "every third column is wrong, from 0 on"),
    "all nan": (lambda w: w * math.nan, "all NaN: never written"),
    "nan behind 32": (
        lambda w: part(w, ALL, slice(32, None), math.nan),
        "those from 32 on are NaN. Which threads compute those from 32 on? Perhaps they were never written",
    ),
    "some nan": (lambda w: part(w, slice(1, 2), slice(3, 4), math.nan), "1 of 420 are NaN: they were never written"),
}
UNKNOWN = {
    "other numbers": lambda w: torch.randn_like(w),
    "one place": lambda w: part(w, slice(2, 3), slice(17, 18), 9.0),
    "some places": lambda w: torch.where(torch.rand_like(w) < 0.3, w + 1, w),
    "noise": lambda w: w + 0.01 * torch.randn_like(w),
    "infinite": lambda w: part(w, slice(2, 3), ALL, math.inf),
    "nearly twice": lambda w: w * (2 + 0.1 * torch.randn_like(w)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_is_named(want, mistake):
    change, words = MISTAKES[mistake]
    message = describe_difference("new_h", change(want), want)
    assert f"It looks like this: {words}" in message or words in message.partition("It looks like this: ")[2]


@pytest.mark.parametrize("mistake", UNKNOWN)
def test_it_is_silent_when_it_does_not_know(want, mistake):
    torch.manual_seed(3)
    message = describe_difference("new_h", UNKNOWN[mistake](want), want)
    assert "new_h is wrong at [" in message
    assert "It looks like" not in message


def test_no_mistake_no_message(want):
    assert describe_difference("new_h", want.clone(), want) is None
    assert describe_difference("new_h", want + 1e-15, want) is None
    assert describe_difference("new_h", want.float(), want, torch.float32) is None


@pytest.mark.parametrize("factor", [1 + 1e-9, 1 - 1e-9])
def test_a_small_difference_in_float64_is_one(want, factor):
    assert describe_difference("new_h", want * factor, want)


def test_nan_agrees_with_nan_only(want):
    both = part(want, ALL, slice(0, 1), math.nan)
    assert describe_difference("new_h", both, both) is None
    assert describe_difference("new_h", want, both)
    assert describe_difference("new_h", both, want)
    infinite = part(want, ALL, slice(0, 1), math.inf)
    assert describe_difference("new_h", infinite, infinite) is None
    assert describe_difference("new_h", infinite, -infinite)


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (None, "x is missing: got None, expected a tensor of shape (2, 3)"),
        (3.5, "x is a float (3.5), expected a tensor of shape (2, 3)"),
        (torch.zeros(3, 2), "x has shape (3, 2), expected (2, 3). Is it transposed?"),
        (torch.zeros(6), "x has shape (6,), expected (2, 3)"),
        (torch.zeros(2, 3, dtype=torch.float16), "x has dtype torch.float16, expected torch.float32"),
    ],
)
def test_no_such_tensor(got, words):
    assert describe_difference("x", got, torch.ones(2, 3), torch.float32) == words


def test_the_first_places_are_shown_with_the_digits_that_differ():
    want = torch.ones(2, 3, dtype=torch.float64)
    got = want.clone()
    got[0, 2] += 1e-9
    got[1] = 2.0
    lines = describe_difference("x", got, want).splitlines()
    assert lines[0] == "x is wrong at [0, 2]: got 1.000000001, expected 1"
    assert lines[1:3] == [
        "           at [1, 0]: got 2, expected 1",
        "           at [1, 1]: got 2, expected 1",
    ]
    assert lines[3] == "4 of 6 elements are wrong"


def test_a_suspect_is_named_before_anything_else(want):
    old = torch.zeros_like(want)
    suspects = {"this is the result of the previous call": old}
    message = describe_difference("new_h", old.clone(), want, suspects=suspects)
    assert message.endswith("It looks like this: this is the result of the previous call")
    assert "the call before" not in describe_difference("new_h", -want, want, suspects={"the call before": old})


def test_a_suspect_of_another_shape_does_no_harm(want):
    assert describe_difference("new_h", -want, want, suspects={"this": want.t(), "that": None})


def test_whole_numbers_and_truth_values_are_compared_exactly():
    numbers = torch.arange(6).view(2, 3)
    assert describe_difference("x", numbers.clone(), numbers) is None
    assert "got 1, expected 0" in describe_difference("x", numbers + 1, numbers)
    assert describe_difference("x", torch.tensor([True, False]), torch.tensor([True, True]))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2,), (0, 3)])
def test_few_elements(shape):
    want = torch.full(shape, 2.0, dtype=torch.float64)
    assert describe_difference("x", want.clone(), want) is None
    for got in (want + 1, want * math.nan, -want, torch.zeros_like(want)):
        assert (describe_difference("x", got, want) is None) == (want.numel() == 0)


def test_expected_zeros():
    want = torch.zeros(3, 4, dtype=torch.float64)
    assert describe_difference("x", want.clone(), want) is None
    assert recognise_mistake(want + 1, want, want == 0, torch.float64, {}) == "everywhere too large by 1"


def test_the_sizes_are_behind_the_first_line(want):
    with pytest.raises(Failure) as failure:
        same("new_h", -want, want, "B=6, S=70")
    first, *_, last = str(failure.value).splitlines()
    assert first.endswith("(B=6, S=70)")
    assert last == "It looks like this: the sign is wrong"


def test_a_wrong_gate_is_named_once():
    case = Case(3, 5, 70, dtype=torch.float64, seed=1)

    def cell(input, weights, bias, old_h, old_cell):
        bias = bias.clone()
        bias.register_hook(lambda d_bias: torch.cat([0.5 * d_bias[:70], d_bias[70:]]))
        z = torch.cat([old_h, input], dim=1) @ weights.t() + bias
        z_i, z_o, z_g = z.chunk(3, dim=1)
        new_cell = old_cell + torch.nn.functional.elu(z_g) * z_i.sigmoid()
        return new_cell.tanh() * z_o.sigmoid(), new_cell

    with pytest.raises(Failure) as failure:
        agree(cell, [case])
    said = str(failure.value)
    assert "d_bias is wrong for the input gate, right for the others" in said
    assert "It looks like" not in said
