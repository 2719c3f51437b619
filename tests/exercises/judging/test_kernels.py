"""Assertions about counted launches: who stored the results, on which stream, under which guard, in which blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from common.emulator import Counted, Launch, Row
from common.exercises.judge import (
    Failure,
    enough_threads,
    guarded,
    launched_once,
    no_idle,
    on_current_stream,
    stored_once,
)
from common.exercises.judging.kernels import few_reads

no_idle_blocks, no_idle_warps = partial(no_idle, part="blocks"), partial(no_idle, part="warps")


def counted(**changes: object) -> Counted:
    """One launch of a kernel that stores 840 bytes, each element once."""
    facts = {"kernel": "scale<float>", "launches": 1, "grid": (2, 3, 1), "block": (64, 1, 1), "stored_bytes": 840}
    return Counted(launches=[Launch(**facts | changes)])


def test_what_is_right_passes():
    stored_once(counted(), 840, "B=3")
    stored_once(counted(), 840, "B=3", "scale")
    for check in (on_current_stream, guarded, no_idle_blocks, launched_once):
        check(counted(), "B=3")


def test_a_gpu_counts_nothing():
    stored_once(None, 840, "B=3")
    for check in (on_current_stream, guarded, no_idle_blocks, launched_once):
        check(None, "B=3")


def between(first: str, second: str) -> dict:
    element = f"element 70 of out, by block {first}, thread (0, 0, 0), and by block {second}, thread (6, 0, 0)"
    return {"repeated_stores": 12, "first_repeated": element}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "other"}, "B=3: scale is never launched: the results must come from a kernel"),
        (
            {"stored_bytes": 0},
            "B=3: scale<float> stores 0 of the 840 bytes of the results: the rest is computed on",
        ),
        (between("(0, 0, 0)", "(0, 1, 0)"), "The step from one of its rows to the next is gridDim.y"),
        (between("(0, 2, 0)", "(1, 2, 0)"), "Threads beyond the last element must store nothing: is there a guard?"),
        (between("(1, 0, 0)", "(1, 0, 0)"), "Threads beyond the last element must store nothing: is there a guard?"),
    ],
)
def test_each_element_is_stored_by_one_thread(changes, message):
    with pytest.raises(Failure) as failure:
        stored_once(counted(**changes), 840, "B=3", "scale")
    assert message in str(failure.value)


def test_no_kernel_at_all():
    with pytest.raises(Failure, match="B=3: a kernel is never launched"):
        stored_once(Counted(), 840, "B=3")


@pytest.mark.parametrize(
    ("check", "changes", "message"),
    [
        (on_current_stream, {"on_other_streams": 1}, "B=3: scale<float> is not launched on the current stream"),
        (launched_once, {"launches": 3}, "scale<float> is launched 3 times where one launch is enough"),
        (guarded, {"unguarded": 1}, "B=3: scale<float> is launched without a device guard"),
        (no_idle_warps, {"idle_warps": 5}, "5 warps of scale<float><<<(2, 3, 1), (64, 1, 1)>>> access no global"),
        (no_idle_blocks, {"idle_blocks": 3}, "3 blocks of scale<float><<<(2, 3, 1), (64, 1, 1)>>> access no memory"),
    ],
)
def test_how_it_was_launched(check, changes, message):
    with pytest.raises(Failure) as failure:
        check(counted(**changes), "B=3")
    assert message in str(failure.value)


def test_kernels_read_each_number_a_few_times():
    def reading(lanes: int) -> Counted:
        row = Row("scale<float>", "k.cu", 7, "y[i] = x[i];", "global load", 1, lanes, 4 * lanes, 1, 1, 0, 0)
        return replace(counted(), rows=[row, replace(row, space="global store", lanes=1000)])

    few_reads(reading(30), 10, "B=3")
    few_reads(None, 10, "B=3")
    with pytest.raises(Failure, match=r"B=3: .* the threads of scale<float> read 31 numbers where 10 are enough"):
        few_reads(reading(31), 10, "B=3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block": (1, 1, 1)}, "scale<float> is launched in blocks of 1 threads"),
        ({"grid": (1, 1, 1)}, "is launched with 64 threads for 210 results. Is there a block for every row?"),
    ],
)
def test_there_are_enough_threads(changes, message):
    enough_threads(counted(), 210, "B=3")
    enough_threads(None, 210, "B=3")
    with pytest.raises(Failure) as failure:
        enough_threads(counted(**changes), 210, "B=3")
    assert message in str(failure.value)
