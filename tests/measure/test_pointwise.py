"""The pointwise kernels alone: who is measured, how a profile is read, what is refused, tables and pictures."""

import pytest
import torch

from common import stages
from common.build import targets
from common.cell import case
from common.errors import UserError
from common.figures import plots
from common.measure import gpu_trace, kernel_times, pointwise
from common.measure.implementations import WrongResult
from common.pages import report
from common.pages.tables import kernels_table
from common.paths import ROOT
from common.results import records, sources
from common.results.rows import check_plausible, gb_per_second
from support.measurement import KERNELS, kernel, measurement
from support.proofs.files import stage_files

with_kernels = pytest.mark.parametrize(
    "stage", [s for s in stages.cell_stages() if s.pointwise_tensors], ids=lambda s: s.title
)


def both_passes(implementation, given):
    found = implementation.forward(given)
    return found, implementation.backward(given, found)


# Who is measured ------------------------------------------------------------------------------------------------


@pytest.mark.needs("g++")
@pytest.mark.proof("emulated grids", files=stage_files(1, 3, 4, 5, 6))
@with_kernels
def test_the_kernels_run_without_the_matrix_products(stage):
    target = targets.choose_target(stage, None)
    implementation = pointwise.from_stage(stage, target)
    for given in pointwise.make_pointwise_inputs(7, 70, *targets.devices_of(stage, target)):
        pointwise.check_kernel_results(implementation, given, *both_passes(implementation, given), "here")


def test_eager_is_the_same_function():
    eager, compiled, *_ = pointwise.pointwise_baselines()
    assert (eager.name, compiled.name) == ("eager", "torch.compile")
    for given in pointwise.make_pointwise_inputs(3, 5, "cpu"):
        pointwise.check_kernel_results(eager, given, *both_passes(eager, given), "here")


@pytest.mark.parametrize("wrong", ["new_h", "new_cell", "d_z", "d_old_cell"])
def test_a_wrong_result_is_refused(wrong):
    eager, *_ = pointwise.pointwise_baselines()
    (given, *_) = pointwise.make_pointwise_inputs(3, 5, "cpu")
    found, gradients = both_passes(eager, given)
    named = dict(zip(("new_h", "new_cell", "d_z", "d_old_cell"), (*found[:2], *gradients), strict=True))
    named[wrong] = named[wrong].detach().clone()
    named[wrong][2, 4] = float("nan")
    new_h, new_cell, *others = named.values()
    with pytest.raises(WrongResult, match=rf"eager is not timed: here, {wrong} is wrong at \[2, 4\]: got nan"):
        pointwise.check_kernel_results(eager, given, (new_h, new_cell), others, "here")


def test_the_products_are_answered_and_what_they_were_asked_is_kept():
    X, z = torch.ones(2, 3), torch.ones(2, 6)
    with pointwise.WithoutProducts(X, z) as products:
        assert torch.addmm(torch.zeros(6), torch.zeros(2, 3), torch.zeros(3, 6)) is z
        assert torch.cat([torch.zeros(2, 1), torch.zeros(2, 2)], 1) is X
        d_z = torch.full((2, 6), 7.0)
        assert d_z.mm(torch.zeros(6, 3)) is X
        assert torch.add(X, X)[0, 0] == 2
    assert products.asked[torch.ops.aten.mm.default][0] is d_z


# How a profile is read ------------------------------------------------------------------------------------------


def gpu_event(ts: float, dur: float, cat: str = "kernel", **args: object) -> dict:
    launch = {"registers per thread": 28, "shared memory": 0, "block": [256, 1, 1], "grid": [16, 8192, 1]}
    return {"ph": "X", "cat": cat, "name": "forward_kernel", "ts": ts, "dur": dur, "args": {**launch, **args}}


def copied(ts: float) -> dict:
    return gpu_event(ts, 250.0, "gpu_memcpy", bytes=kernel_times.COPIED)


EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 5.0, "dur": 3.0, "args": {}},
    gpu_event(0.5, 9.0),  # before the first copy: nobody's
    gpu_event(720.0, 100.0),
    copied(400.0),
    gpu_event(10.0, 30.0),
    gpu_event(50.0, 1.0, "gpu_memset", bytes=4),
    gpu_event(60.0, 2.0, "gpu_memcpy", bytes=8),
    copied(1.0),
]


def test_passes_are_what_lies_between_two_copies():
    copies, work = gpu_trace.split_passes(EVENTS, kernel_times.COPIED)
    assert copies == [250.0, 250.0]
    assert [[event["dur"] for event in events] for events in work] == [[30.0, 1.0, 2.0], [100.0]]


class H200:
    max_threads_per_multi_processor = 2048
    regs_per_multiprocessor = 65536
    shared_memory_per_multiprocessor = 233472


def test_a_row_of_one_kernel(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: H200)
    implementation = pointwise.PointwisePart("stage 3", None, None, stages.find_stage(3))
    passes = [[gpu_event(0, 30.0)], [gpu_event(0, 50.0)], [gpu_event(0, 40.0)]]
    row = kernel_times.kernel_row(implementation, "backward", case.Case(8, 0, 1000), passes, 4300.04, 4400.04)
    assert (row["q1"], row["median"], row["q3"], row["samples"]) == (35.0, 40.0, 45.0, 3)
    assert (row["bytes"], row["copy_gb_per_second"], row["sum_gb_per_second"]) == (10 * 8 * 1000 * 4, 4300.0, 4400.0)
    assert (row["kernels"], row["registers"], row["threads_per_block"], row["occupancy"]) == (1, 28, 256, 1.0)
    assert gb_per_second(row) == pytest.approx(8.0)
    records.validate(measurement() | {"kernels": [row]}, records.MEASURED)


def test_a_row_of_several_kernels_is_their_sum():
    peer = pointwise.PointwisePart("eager", None, None)
    row = kernel_times.kernel_row(
        peer, "forward", case.Case(8, 0, 10), [[gpu_event(0, 3.0), gpu_event(9, 4.0)]] * 3, 4300, 4400
    )
    assert (row["median"], row["kernels"], row["registers"], row["bytes"]) == (7.0, 2, None, None)


def test_a_pass_without_kernels_is_an_error():
    peer = pointwise.PointwisePart("eager", None, None)
    with pytest.raises(UserError, match="reports no kernel for the forward pass of eager"):
        kernel_times.kernel_row(peer, "forward", case.Case(8, 0, 10), [[], []], 4300, 4400)


@pytest.mark.syllabus("6.3d")
@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected"),
    [
        (256, 28, 0, 1.0),
        (256, 32, 0, 1.0),
        (256, 33, 0, 0.75),  # 40 registers a thread, 12 warps a quarter, 6 blocks
        (256, 64, 0, 0.5),
        (1024, 33, 0, 0.5),
        (32, 16, 100_000, 2 / 64),
    ],
)
def test_occupancy(threads, registers, shared, expected):
    assert gpu_trace.occupancy(threads, registers, shared, 2048, 65536, 233472) == pytest.approx(expected, abs=1e-3)


# What is refused ------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("6.1b")
def test_faster_than_memory_is_an_error():
    check_plausible(kernel("stage 3", "forward", 281.0))
    check_plausible(kernel("stage 3", "forward", 268.0))  # faster than a copy: it reads more than it writes
    too_fast = kernel("stage 3", "forward", 240.0)
    with pytest.raises(UserError, match=r"stage 3, forward, has 1.14 times the speed of memory, which is impossible"):
        check_plausible(too_fast)
    with pytest.raises(UserError, match=r"kernel 1: stage 3, forward, has 1.14 times"):
        records.validate(measurement() | {"kernels": [KERNELS[0], too_fast]}, records.MEASURED)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pass": "sideways"}, "kernel 0 has pass = 'sideways'"),
        ({"registers": "many"}, "kernel 0 has registers = 'many', which is of the wrong type"),
        ({"median": 0.5}, "kernel 0 has quartiles out of order"),
    ],
)
def test_a_file_with_wrong_kernels_is_refused(changes, message):
    with pytest.raises(UserError, match=message):
        records.validate(measurement() | {"kernels": [KERNELS[0] | changes]}, records.MEASURED)
    with pytest.raises(UserError, match="`kernels` is not a list"):
        records.validate(measurement() | {"kernels": None}, records.MEASURED)


def test_a_file_from_before_is_still_read():
    old = measurement()
    assert "kernels" not in old
    records.validate(old, records.MEASURED)
    assert plots.plot_kernels(old) is None


def test_a_batch_shrinks_until_it_fits(monkeypatch):
    def profiled(implementations, B, S):
        if B > 3:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return [kernel("eager", "forward", 1.0, B, S)], []

    monkeypatch.setattr(kernel_times, "profile_kernels", profiled)
    rows, not_run = kernel_times.measure_kernels_at([], 8, 4)
    assert [row["B"] for row in rows] == [2]
    assert not_run[0]["reason"] == "the GPU's memory is too small; measured with B2 instead"


def test_a_profiler_that_says_nothing_is_named_and_a_wrong_result_ends_it(monkeypatch):
    def profiled(*_):
        raise UserError("torch.profiler reports 0 passes on the GPU, but 120 were made")

    monkeypatch.setattr(kernel_times, "profile_kernels", profiled)
    rows, not_run = kernel_times.measure_kernels_at([], 8, 4)
    assert rows == []
    assert "0 passes" in not_run[0]["reason"]

    def wrong(*_):
        raise WrongResult("stage 3 is not timed")

    monkeypatch.setattr(kernel_times, "profile_kernels", wrong)
    with pytest.raises(WrongResult):
        kernel_times.measure_kernels_at([], 8, 4)


# Tables and pictures --------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(monkeypatch) -> dict:
    result = measurement("h200", gpu="NVIDIA H200") | {"kernels": KERNELS}
    result["sources"]["3"] = sources.hash_stage(stages.find_stage(3))
    monkeypatch.setattr(records, "read_recorded", lambda: [result])
    return result


def test_the_table(recorded):
    text = kernels_table.kernels_table(ROOT / "README.md")
    assert "**NVIDIA H200**, float32, torch 2.15.0, 2026-03-14; in the same run a copy: 4,300 GB/s, " in text
    line = "| stage 3 | B8192 S4096 | forward | 1 | 330.0 (326.7 to 333.3) | 3,660 | 85% | 28 | 100% |"
    assert line in text
    assert "| eager | B8192 S4096 | backward | 7 | 1,076.0 (1,065.2 to 1,086.8) |  |  |  |  |" in text
    assert "stale" not in text
    recorded["sources"]["3"] = "older"
    assert "| stage 3 (stale: sources changed since) |" in kernels_table.kernels_table(ROOT / "README.md")


def test_nothing_recorded(monkeypatch):
    monkeypatch.setattr(records, "read_recorded", lambda: [measurement()])
    assert kernels_table.kernels_table(ROOT / "README.md").startswith("Nothing recorded yet")


def test_the_picture(recorded):
    figure = plots.plot_kernels(recorded)
    large, small = figure.axes
    assert [axis.get_title(loc="left") for axis in (large, small)] == ["B8192 S4096", "B4096 S1024"]
    assert [bar.get_width() for bar in large.patches] == pytest.approx([0.851, 0.780], abs=1e-3)
    assert [text.get_text() for text in large.texts] == ["85%: 3,660 GB/s, 330 us", "78%: 3,355 GB/s, 400 us"]
    assert set(large.lines[0].get_xdata()) == {1}
    assert "NVIDIA H200" in figure.get_suptitle()


def test_the_report_shows_them_and_what_stands_in_for_the_emulator(recorded):
    rows = [{"stage": 3, "target": "emulator", "device": "cpu", "dtype": "float32", "name": "sizes",
             "outcome": "passed", "message": "", "seconds": 1.0}]  # fmt: skip
    page = report.render_page(measurement(), [recorded], rows)
    assert "The pointwise kernels alone" in page
    assert "Share of a copy&#x27;s speed (h200)" in page
    assert "checked on the emulator, where nothing is timed" in page
    assert "Stage 3: nothing recorded yet." in page
    assert "The pointwise kernels alone" not in report.render_page(measurement(), [], [])


# On a GPU -------------------------------------------------------------------------------------------------------


@pytest.mark.needs("gpu", "nvcc", "g++")
@pytest.mark.syllabus("1.4a", "3.7a", "3.7b")
def test_kernels_on_a_gpu():
    wanted = [stage for stage in stages.cell_stages() if stage.pointwise_tensors]
    rows, not_run = kernel_times.profile_kernels(
        [*pointwise.pointwise_baselines(), *map(pointwise.from_stage, wanted)], 256, 1000
    )
    assert not_run == [] or all("speed of memory" in entry["reason"] for entry in not_run)  # all in the cache
    by_name = {(row["name"], row["pass"]): row for row in rows}
    assert by_name["eager", "forward"]["kernels"] > 3
    for row in rows:
        if row["stage"]:
            assert row["kernels"] == 1
            assert row["threads_per_block"] == 256
            assert 0 < row["occupancy"] <= 1
