"""What notebook 01b says of clocks, and of where the time of a step goes: tried on stage 1, on one thread."""

from __future__ import annotations

import itertools
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.profiler import ProfilerActivity

from common import load
from common.cell.case import Case
from common.measure.clock import Samples, interleave
from common.paths import ROOT
from support.labs import definitions, texts
from support.profiled import operations
from support.proofs.files import notebook_files, stage_files

pytestmark = pytest.mark.proof("claims of notebooks", files=[*notebook_files("01b_where_time_goes"), *stage_files(1)])


SMALL, LARGE = (16, 32, 128), (64, 1024, 128)  # B, I, S


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def microseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def step(size: tuple[int, int, int]) -> Callable[[], object]:
    """A call of forward and backward."""
    lltm, case = load(1).equations, Case(*size)
    arguments, gradients = list(case.inputs().values()), case.gradients()
    return lambda: torch.autograd.grad(lltm(*arguments), arguments, gradients)


# Clocks ---------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("1.3a")
def test_the_first_call_is_the_slowest():
    command = [sys.executable, "-c", texts("01b_where_time_goes")["script"]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    first, *later = (int(found) for found in re.findall(r"call \d: +(\d+) us", done.stdout))
    assert len(later) == 4, done.stderr
    assert first > 2 * statistics.median(later)


@pytest.mark.needs("gpu")
@pytest.mark.syllabus("1.3b")
def test_a_clock_that_does_not_wait_has_timed_the_launch():
    def launch() -> None:
        torch.cuda._sleep(100_000_000)  # some 50 ms of work for the GPU

    torch.cuda.synchronize()
    launched, waited = microseconds(launch), microseconds(torch.cuda.synchronize)
    assert waited > 10 * launched, "the next one to wait pays"
    right = microseconds(lambda: (launch(), torch.cuda.synchronize()))
    assert right > 0.5 * waited
    (sample,) = interleave([launch], "cuda", 1, 0.0)
    assert sample.flat[0] > 0.5 * waited, "the workbook's clock waits"


@pytest.mark.syllabus("1.3c")
def test_disturbances_move_the_mean_and_leave_the_median():
    """Every 20th call is held up, as if by somebody else: 5 ms on top of its own time."""
    call, alone = step(SMALL), []
    for _ in range(400):
        start = time.perf_counter()
        call()
        alone.append((time.perf_counter() - start) * 1e6)
    disturbed = [own + (5000 if k % 20 == 0 else 0) for k, own in enumerate(alone)]
    moved = statistics.mean(disturbed) - statistics.mean(alone)
    assert moved == pytest.approx(250)
    before, after = (Samples([times]).quartiles()[1] for times in (alone, disturbed))
    assert 0 <= after - before < moved


# One step -------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("1.4a")
def test_the_profiler_counts_the_operations_of_a_step():
    arguments = [tensor.detach() for tensor in Case(*SMALL).inputs().values()]
    forward = operations(lambda: load(1).equations(*arguments))
    assert forward == ["cat", "linear", "sigmoid", "sigmoid", "elu", "mul", "add", "tanh", "mul"]
    backward = operations(step(SMALL))[len(forward) :]
    assert {"mm", "tanh_backward", "sigmoid_backward", "elu_backward", "sum"} <= set(backward)


@pytest.mark.syllabus("1.4d")
def test_a_timeline_has_the_operations_in_order_inside_the_span_of_the_step(tmp_path, monkeypatch):
    notebook = definitions("01b_where_time_goes")
    monkeypatch.setattr(notebook, "activities", [ProfilerActivity.CPU], raising=False)
    share: dict[tuple, list[float]] = {}
    for size in [SMALL, LARGE] * 7:
        arguments = [tensor.detach() for tensor in Case(*size).inputs().values()]
        outermost, whole = notebook.timeline(lambda a=arguments: load(1).equations(*a), tmp_path / "step.json")
        names = [event["name"].removeprefix("aten::") for event in outermost]
        assert [name for name in names if name != "chunk"] == operations(lambda a=arguments: load(1).equations(*a))
        for event, later in itertools.pairwise(outermost):
            assert event["ts"] + event["dur"] <= later["ts"]
        assert whole["ts"] <= outermost[0]["ts"]
        assert outermost[-1]["ts"] + outermost[-1]["dur"] <= whole["ts"] + whole["dur"]
        share.setdefault(size, []).append(sum(event["dur"] for event in outermost) / whole["dur"])
    assert max(share[SMALL]) < max(share[LARGE]), "the gaps are Python, whose time does not depend on the size"
