"""What checks of whole programs make of an output, and how a difference is told."""

from __future__ import annotations

import pytest
import torch

from common.emulator import Counted
from common.exercises.judge import Failure
from common.exercises.judging.diagnosis import describe_difference
from common.exercises.judging.programs import format_arguments, printed, require_clean_run
from common.exercises.judging.work import ProgramRun, keep_report

CONTENT = "emulator: 1 launch, no problem found"


class Fake:
    """A `Work` whose program has run already."""

    def __init__(self, output, status=0):
        self.ran = ProgramRun(status, output, Counted())

    def program(self, file, *arguments, counting, **variables):
        self.arguments = arguments
        return self.ran


def test_printed_numbers_become_a_tensor():
    work = Fake(f"1\n2.5\n-3\nnan\n{CONTENT}")
    got, _ = printed(work, "x.cu", [2, torch.tensor([0.5, 1.5])], (2, 2), "B=2", torch.float64)
    assert work.arguments == ("2", "0.5", "1.5")
    assert got.dtype == torch.float64
    assert got[0].tolist() == [1, 2.5]
    assert got[1, 1].isnan()


def test_whole_numbers_above_the_digits_of_a_double_are_exact():
    got, _ = printed(Fake(f"{2**53 + 1}\n{CONTENT}"), "x.cu", [], (1,), "B=1", torch.int64)
    assert got.tolist() == [2**53 + 1]


@pytest.mark.parametrize(
    ("output", "says"),
    [(f"1\n{CONTENT}", "prints 1 numbers, expected 4"), (f"here\n1 2 3\n{CONTENT}", "| here")],
)
def test_another_output_is_refused(output, says):
    with pytest.raises(Failure, match="B=2") as failure:
        printed(Fake(output), "x.cu", [], (2, 2), "B=2")
    assert says in str(failure.value)


@pytest.mark.parametrize(
    ("status", "output", "says"),
    [
        (66, "1\nthe emulator found:\n  error: race", "the emulator found:\n  error: race"),
        (0, "1\nthe emulator found:\n  warning: late", "warning: late"),
        (0, f"1\n{CONTENT}; checks switched off: races", "switched off: races"),
        (0, "1\nemulator: no kernel was launched, so there was nothing to check", "no kernel was launched"),
        (0, "1", "the program ends early"),
        (3, f"1\n{CONTENT}", "status 3"),
        (None, "1", "did not finish in time"),
    ],
)
def test_only_a_clean_run_counts(status, output, says):
    with pytest.raises(Failure) as failure:
        require_clean_run(ProgramRun(status, output, Counted()), "B=2")
    assert says in str(failure.value)


def test_a_run_that_counted_nothing_is_not_clean():
    with pytest.raises(Failure):
        require_clean_run(ProgramRun(0, f"1\n{CONTENT}", None), "B=2")


def test_only_what_follows_the_nonce_is_a_report():
    assert keep_report(f"1\n\nab12\n{CONTENT}\n", "ab12") == f"1\n{CONTENT}"
    assert keep_report(f"1\n{CONTENT}\n", "ab12") == "1"
    assert keep_report(f"1\n{CONTENT}\n\nab12\nthe emulator found:\n  error: race", "ab12") == (
        "1\nthe emulator found:\n  error: race"
    )


def test_numbers_keep_all_their_digits():
    x = torch.randn(20, dtype=torch.float64)
    assert [float(word) for word in format_arguments([x])] == x.tolist()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (slice(0, 70), "the first 70 columns are wrong, the others right"),
        (slice(70, 140), "columns 70 to 139 are wrong, the others right"),
        (slice(140, 210), "only the first 140 columns are right"),
    ],
)
def test_the_wrong_columns_are_named(columns, says):
    numbers = torch.Generator().manual_seed(1)
    want = torch.randn(3, 210, generator=numbers)
    got = want.clone()
    got[:, columns] = torch.randn(3, 70, generator=numbers)
    assert says in describe_difference("d_z", got, want)
