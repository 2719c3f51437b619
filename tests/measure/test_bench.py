"""The clock and the measurement: what is timed, what is refused, and what is named as not run."""

import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import pytest
import torch

from common import load, stages
from common.cell.case import Case
from common.errors import UserError
from common.measure import bench, cell_times, clock, passes, quiet
from common.measure.implementations import (
    MODES,
    Implementation,
    Run,
    WrongResult,
    baselines,
    compile_and_check,
    load_triton_module,
    make_input_sets,
    stage_implementation,
    under_cuda_graph,
)
from common.paths import ROOT
from common.results import records, sources
from common.stages import Stage
from support import measurement
from support.profiled import operations

CASE = Case(2, 3, 4)
TINY = cell_times.Plan(
    sizes={"cpu": ((2, 3, 4),), "cuda": ((2, 3, 4),)},
    grads=("all", "parameters"),
    modes=None,
    rounds=3,
    block_seconds=1e-4,
)


@pytest.fixture
def eager() -> Implementation:
    return Implementation("eager", load(1).equations)


def test_a_row_carries_every_fact(eager):
    stage = stage_implementation(stages.find_stage(1), "cpu")
    rows, not_run = cell_times.measure_cell([eager, stage], CASE, TINY)
    result = measurement.measurement() | {"rows": rows, "not_run": not_run}
    records.validate(result, records.MEASURED)
    assert [(row["name"], row["pass"]) for row in rows] == [
        ("eager", "forward"),
        ("stage 1", "forward"),
        ("eager", "forward+backward"),
        ("stage 1", "forward+backward"),
    ]
    assert rows[0]["ratio"] == 1
    assert rows[0]["stage"] is None
    row = rows[-1]
    assert (row["stage"], row["target"], row["device"], row["dtype"]) == (1, "host", "cpu", "float32")
    assert (row["maths"], row["grads"], row["threads"]) == ("IEEE", "all", torch.get_num_threads())
    assert (row["B"], row["I"], row["S"], row["samples"]) == (2, 3, 4, TINY.rounds)


def test_gradients_for_weights_and_bias_only(eager):
    case = replace(CASE, requires_grad=cell_times.REQUIRES_GRAD["parameters"])
    rows, _ = cell_times.measure_cell([eager], case, TINY)
    assert {row["grads"] for row in rows} == {"parameters"}
    run = Run(eager, make_input_sets(case), backward=True)
    run()
    assert [tuple(tensor.shape) for tensor in run.result] == [(2, 4), (2, 4), (12, 7), (12,)]


def test_the_strongest_peers_are_timed_in_the_same_run_on_a_gpu():
    """Eager and torch.compile under CUDA graphs, in the full measurement and in that of the tour."""
    names = ("eager", "torch.compile", "torch.compile reduce-overhead", "Triton", "stage 5", "stage 6")
    graphs = cell_times.list_cuda_graphs([Implementation(name, lambda *given: given) for name in names])
    assert [one.name for one in graphs] == [f"CUDA graph of {name}" for name in ("eager", "torch.compile", "stage 6")]
    for plan in (bench.FULL, bench.TOUR):
        assert plan.graphs
        assert "reduce-overhead" in plan.modes


# Nothing wrong is timed -----------------------------------------------------------------------------------------


def refused(eager: Implementation, lltm) -> str:
    with pytest.raises(WrongResult) as error:
        cell_times.measure_cell([eager, Implementation("stage 2", lltm, 2, "host")], CASE, TINY)
    return str(error.value)


def test_a_wrong_output_is_refused_before_timing(eager, monkeypatch):
    monkeypatch.setattr(clock, "interleave", lambda *_: pytest.fail("something was timed"))

    def lltm(*arguments):
        new_h, new_cell = eager.function(*arguments)
        return new_h + 1e-3, new_cell

    assert refused(eager, lltm).startswith("stage 2 is not timed: before it is timed, new_h is wrong at [0, 0]")


def test_a_wrong_gradient_is_refused(eager):
    def lltm(input, weights, bias, old_h, old_cell):
        return eager.function(input, weights, bias + 1e-2 * (bias - bias.detach()), old_h, old_cell)

    assert "d_bias is wrong" in refused(eager, lltm)


def test_a_result_that_turns_wrong_while_timed_is_refused(eager, monkeypatch):
    timed, interleave = [], clock.interleave

    def lltm(*arguments):
        new_h, new_cell = eager.function(*arguments)
        return (new_h + len(timed), new_cell)

    def timing(*arguments):
        timed.append(True)
        return interleave(*arguments)

    monkeypatch.setattr(clock, "interleave", timing)
    assert refused(eager, lltm).startswith("stage 2 is not timed: after it was timed, new_h is wrong")


def test_a_remembered_result_is_refused(eager):
    memory = []

    def lltm(*arguments):
        memory.append(eager.function(*arguments))
        return memory[0]

    def detached(*arguments):
        new_h, new_cell = lltm(*arguments)
        fresh_h, fresh_cell = eager.function(*arguments)
        return fresh_h - fresh_h.detach() + new_h.detach(), fresh_cell - fresh_cell.detach() + new_cell.detach()

    assert "new_h is wrong" in refused(eager, detached)


def test_an_output_that_nobody_wrote_is_refused(eager):
    def lltm(*arguments):
        new_h, new_cell = eager.function(*arguments)
        return new_h, new_cell - new_cell.detach() + torch.empty_like(new_cell)

    assert "new_cell is wrong at [0, 0]: got nan" in refused(eager, lltm)


# Rounds ---------------------------------------------------------------------------------------------------------


def test_implementations_take_turns_with_equally_many_calls():
    order = []
    samples = clock.interleave([partial(order.append, name) for name in "ABC"], "cpu", 30, 0.0)
    guess, calls = order[:3], order[3:]
    assert guess == ["A"] * 3  # how long one call takes
    assert [len(taken.rounds) for taken in samples] == [30] * 3
    block = len(calls) // (3 * (clock.WARM_UP_ROUNDS + 30))
    names = "".join(calls[::block])
    assert calls == [name for name in names for _ in range(block)]
    rounds = {names[k : k + 3] for k in range(0, len(names), 3)}
    assert rounds == {"ABC", "ACB", "BAC", "BCA", "CAB", "CBA"}, "nobody always comes after the same other one"


def test_a_block_of_calls_gives_the_mean_of_one_in_microseconds():
    (sample,) = clock.sample_host(lambda: time.sleep(0.002), 5)
    assert sample >= 2000


def test_ratios_are_paired_by_round():
    eager = clock.Samples([[10.0], [100.0], [1000.0]])
    stage = clock.Samples([[5.0], [50.0, 50.0], [900.0]])
    assert stage.ratio_to(eager) == 0.5  # and not the ratio of the medians, 50 / 100, by chance: see below
    assert clock.Samples([[9.0], [150.0], [900.0]]).ratio_to(eager) == 0.9
    assert eager.quartiles() == (55.0, 100.0, 550.0)
    assert clock.Samples([[3.0]]).quartiles() == (3.0, 3.0, 3.0)


def test_garbage_collection_is_off_while_timing_and_on_after():
    import gc

    seen = []
    with pytest.raises(ZeroDivisionError):
        clock.interleave([lambda: seen.append(gc.isenabled()), lambda: 1 / 0], "cpu", 1, 0.0)
    assert seen[:3] == [True] * 3
    assert not any(seen[3:])
    assert gc.isenabled()


# What is saved for backward --------------------------------------------------------------------------------------


class Saving(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, old_cell):
        own, output = old_cell * 2, old_cell.clone()
        ctx.save_for_backward(own, own[:, 1:], input, weights, output)
        return output

    @staticmethod
    def backward(ctx, gradient):
        return None, None, gradient


def test_saved_bytes_count_each_storage_once_and_inputs_and_outputs_apart():
    def lltm(input, weights, bias, old_h, old_cell):
        return old_h, Saving.apply(input, weights, old_cell)

    run = Run(Implementation("stage 2", lltm), make_input_sets(CASE), backward=False)
    assert run.saved_bytes() == {
        "saved_bytes": 4 * 2 * 4,
        "saved_input_bytes": 4 * (2 * 3 + 12 * 7),
        "saved_output_bytes": 4 * 2 * 4,
    }


def test_saved_bytes_of_eager(eager):
    X, z, part = 2 * 7, 2 * 12, 2 * 4  # sigmoid twice, elu's result, tanh
    assert compile_and_check(eager, make_input_sets(CASE))["saved_bytes"] == 4 * (X + z + 4 * part)


# What cannot run ------------------------------------------------------------------------------------------------


def test_what_does_not_compile_is_named_and_the_rest_is_timed(eager):
    def lltm(*arguments):
        raise RuntimeError("no compiler\nand a long story")

    rows, not_run = cell_times.measure_cell([eager, Implementation("torch.compile", lltm, compiled=True)], CASE, TINY)
    assert {row["name"] for row in rows} == {"eager"}
    assert not_run == [
        {
            "name": "torch.compile",
            "device": "cpu",
            "what": "B2 I3 S4 on CPU tensors, gradients for all inputs",
            "reason": "no compiler",
        }
    ]


def test_a_stage_that_raises_is_an_error(eager):
    with pytest.raises(ZeroDivisionError):
        cell_times.measure_cell([eager, Implementation("stage 2", lambda *_: 1 / 0)], CASE, TINY)


def test_a_size_shrinks_until_it_fits(eager):
    def lltm(*arguments):
        if len(arguments[0]) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return eager.function(*arguments)

    rows, not_run = cell_times.measure_cell_at([replace(eager, function=lltm)], replace(CASE, B=11), TINY)
    assert {row["B"] for row in rows} == {2}
    assert [entry["reason"] for entry in not_run] == ["the GPU's memory is too small; measured with B2 instead"]
    assert not_run[0]["what"].startswith("B11 I3 S4")


def test_not_even_one_row_fits():
    def lltm(*arguments):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    rows, not_run = cell_times.measure_cell_at([Implementation("eager", lltm)], CASE, TINY)
    assert rows == []
    assert [entry["reason"] for entry in not_run] == ["even B1 does not fit the GPU's memory"]


def test_the_emulator_is_never_timed():
    stage = Stage(3, "stage3_cuda_pointers", "cell", "CUDA kernels", ("cuda", "emulator"))
    with pytest.raises(
        UserError, match="only the emulator runs it on CPU tensors, and times on an emulator say noth"
    ):
        stage_implementation(stage, "cpu")


def test_a_stage_without_code_for_a_device_says_so():
    with pytest.raises(UserError, match="it has no code for CPU tensors"):
        stage_implementation(Stage(3, "stage3_cuda_pointers", "cell", "CUDA kernels", ("cuda",)), "cpu")


def test_on_the_emulator_a_glance_shows_what_others_have_recorded(capsys, monkeypatch):
    monkeypatch.setattr(clock, "interleave", lambda *_: pytest.fail("something was timed"))
    stage = stages.find_stage(3)
    monkeypatch.setattr(records, "read_recorded", list)
    assert bench.compare_with_eager(stage, "emulator", "cpu") == []
    assert "On a GPU: nothing recorded yet." in capsys.readouterr().out
    recorded = measurement.measurement("h200", gpu="NVIDIA H200", ratios=measurement.RATIOS | {"stage 3": 0.5})
    monkeypatch.setattr(records, "read_recorded", lambda: [recorded])
    bench.compare_with_eager(stage, "emulator", "cpu")
    printed = capsys.readouterr().out
    assert re.search(r"stage 3.* NVIDIA H200 +B16 I32 S128 +50 \(2\.00\) +200 \(2\.00\)", printed)


def test_a_measurement_without_a_gpu_ends_with_what_is_recorded_for_emulated_stages(capfd, monkeypatch):
    monkeypatch.setattr(records, "read_recorded", list)
    found = bench.measure_stages(replace(TINY, grads=("all",), kernels=True), ["cpu"], [stages.find_stage(3)], None)
    assert found["kernels"] == []
    assert [entry["name"] for entry in found["not_run"]] == ["every implementation", "stage 3"]
    assert "Stage 3 runs on the emulator here" in capfd.readouterr().out


def test_a_stage_that_cannot_run_is_listed_with_its_reason(capfd):
    stage = Stage(3, "stage3_cuda_pointers", "cell", "CUDA kernels", ("cuda", "emulator"))
    found = cell_times.measure_cell_on("cpu", [stage], replace(TINY, grads=("all",)))
    assert {row["name"] for row in found["rows"]} == {"eager"}
    assert found["not_run"] == [
        passes.not_run_entry(
            "stage 3",
            "cpu",
            "all sizes",
            "only the emulator runs it on CPU tensors, and times on an emulator say nothing about a GPU",
        )
    ]


def test_eager_is_measured_again_before_each_part_and_at_the_end(capfd):
    found = cell_times.measure_cell_on("cpu", [], replace(TINY, repeats=True))
    assert len(found["repeats"]) == len(TINY.grads) + 1
    result = measurement.measurement() | {"repeats": found["repeats"]}
    records.validate(result, records.MEASURED)
    assert {(row["B"], row["I"], row["S"]) for row in found["repeats"]} == {TINY.sizes["cpu"][0]}
    assert all(median > 0 for row in found["repeats"] for median in row["medians"].values())
    assert cell_times.measure_cell_on("cpu", [], TINY)["repeats"] == []


def medians(forward: float) -> dict:
    return {"device": "cpu", "B": 2, "I": 3, "S": 4, "medians": {"forward": forward, "forward+backward": 9.0}}


@pytest.mark.parametrize(
    ("times", "measurements"),
    [
        ([5.1], 1),
        ([9.0, 5.1, 5.2], 3),  # the second try began while the baseline was disturbed
        ([9.0, 9.0, 9.0], 3),
    ],
)
def test_that_during_which_the_baseline_drifts_is_measured_again(times, measurements, capfd):
    measured, left = [], [medians(time) for time in times]

    def measure():
        measured.append(1)
        return len(measured)

    found = quiet.measure_while_quiet(measure, lambda: left.pop(0), [medians(5.0)])
    assert found == (measurements, [medians(times[-1])])
    assert not left
    assert capfd.readouterr().out.count("measured again: eager's forward at B2 I3 S4") == measurements - 1


def test_nothing_is_measured_again_on_a_machine_that_was_never_quiet(capfd):
    drifted = [medians(5.0), medians(9.0)]
    assert quiet.measure_while_quiet(lambda: 1, lambda: medians(9.0), drifted) == (1, [medians(9.0)])
    assert "measured again" not in capfd.readouterr().out


def test_without_a_baseline_everything_is_measured_once():
    assert quiet.measure_while_quiet(lambda: 1, None, []) == (1, [])


@pytest.mark.parametrize(("times", "first"), [([9.0, 5.0, 5.1], 5.1), ([5.0, 5.1], 5.1), ([5.0, 9.0, 5.0, 9.0], 9.0)])
def test_the_first_time_of_the_baseline_is_one_that_repeats(times, first):
    left = [medians(time) for time in times]
    assert quiet.settle(lambda: left.pop(0)) == medians(first)
    assert not left


@pytest.mark.parametrize("only, numbers", [(None, [2, 7]), ("cell", [2]), ("sequence", [7])])
def test_the_stages_of_one_kind_can_be_chosen(only, numbers, tmp_path, monkeypatch):
    measured = []

    def measure(plan, devices, wanted, path):
        measured.extend(wanted)
        return measurement.measurement()

    monkeypatch.setattr(bench.stages, "timed_stages", lambda: [stages.find_stage(2), stages.find_stage(7)])
    monkeypatch.setattr(bench, "measure_stages", measure)
    bench.record_benchmark(output=str(tmp_path / "here.json"), only=only)
    assert [stage.number for stage in measured] == numbers
    parts = [function for function, *_ in bench.parts_of(bench.FULL, "cuda", measured, [])]
    cells = [bench.measure_cell_on, bench.kernel_times.measure_kernels]
    assert [part for part in parts if part in cells] == (cells if 2 in numbers else [])
    assert (bench.times.measure_part in parts) == (7 in numbers)


def test_a_gpu_that_is_not_there_cannot_be_chosen(monkeypatch):
    monkeypatch.setattr(bench, "available_devices", lambda: ["cpu"])
    with pytest.raises(UserError, match=r"^--device cuda: torch can use no GPU here"):
        bench.devices_to_measure("cuda")


# torch.compile, maths, and the command --------------------------------------------------------------------------


@pytest.mark.needs("g++")
@pytest.mark.syllabus("1.4c")
def test_torch_compile_is_compiled_before_it_is_timed():
    eager, compiled = (
        Run(implementation, make_input_sets(CASE), backward=True) for implementation in baselines("cpu")
    )
    start = time.perf_counter()
    compiled()
    first = time.perf_counter() - start
    assert first > 100 * clock.estimate_seconds(compiled, "cpu")
    gone = {"sigmoid", "tanh", "elu", "sigmoid_backward", "tanh_backward", "elu_backward"}
    assert gone <= set(operations(eager))
    assert not gone.intersection(operations(compiled))
    rows, not_run = cell_times.measure_cell(baselines("cpu"), CASE, TINY)
    assert not_run == []
    assert [row["name"] for row in rows] == ["eager", "torch.compile"] * 2
    with (
        torch.compiler.set_stance("fail_on_recompile"),
        pytest.raises(RuntimeError, match="fail_on_recompile"),
    ):
        baselines("cpu")[1].function(*Case(3, 3, 4).inputs().values())


def test_maths_is_ieee_whatever_was_set():
    torch.set_float32_matmul_precision("high")
    try:
        with cell_times.ieee_float32():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_the_command_writes_a_result_without_the_host_name(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(bench, "TOUR", TINY)
    monkeypatch.setattr(bench, "available_devices", lambda: ["cpu"])
    monkeypatch.setattr(stages, "timed_stages", lambda: [stages.find_stage(1)])
    output = tmp_path / "deep" / "bench.json"
    assert bench.record_benchmark(quick=True, output=str(output)) == 0
    result = records.read_result(output)
    assert result["quick"]
    assert {row["name"] for row in result["rows"]} == {"eager", "stage 1"}
    assert {row["grads"] for row in result["rows"]} == {"all", "parameters"}
    assert result["sources"] == {"1": sources.hash_stage(stages.find_stage(1))}
    assert [entry["reason"] for entry in result["not_run"]] == ["no GPU that torch can use"]
    assert platform.node() not in json.dumps(result) or len(platform.node()) < 4
    printed = capfd.readouterr().out
    assert "saved for backward" in printed
    assert "not run: every implementation, all sizes (cuda): no GPU that torch can use" in printed


def test_a_killed_measurement_is_one_clear_line():
    with pytest.raises(UserError, match="the measuring process was killed"):
        bench.run_in_process(os._exit, 9)


def test_a_glance_prints_the_stage_beside_eager(capsys, monkeypatch):
    monkeypatch.setattr(bench, "GLANCE", replace(TINY, grads=("all",)))
    rows = bench.compare_with_eager(stages.find_stage(1), "host", "cpu")
    assert {row["name"] for row in rows} == {"eager", "stage 1"}
    printed = capsys.readouterr().out
    assert "B2 I3 S4 on CPU tensors, gradients for all inputs" in printed
    assert "stage 1" in printed


def test_a_disturbed_measurement_says_so():
    row = measurement.measurement()["rows"][0]
    assert "something else was running" in cell_times.warn_if_disturbed([row | {"q1": 100, "q3": 150}])
    assert cell_times.warn_if_disturbed([row | {"q1": 100, "q3": 110}]) == ""


@pytest.mark.needs("gpu")
def test_cuda_tensors():
    case = replace(CASE, device="cuda")
    with cell_times.ieee_float32():
        rows, not_run = cell_times.measure_cell(
            [*baselines("cuda"), stage_implementation(stages.find_stage(1), "cuda")], case, TINY
        )
    assert not_run == []
    compiled = [
        "torch.compile",
        *(f"torch.compile {mode}" for mode in MODES),
        *(["Triton"] if load_triton_module() else []),
    ]
    assert [row["name"] for row in rows if row["pass"] == "forward"] == ["eager", *compiled, "stage 1"]
    assert all(row["device"] == "cuda" and row["samples"] >= TINY.rounds for row in rows)


@pytest.mark.needs("gpu")
def test_cuda_graphs_replay_the_right_cell(eager):
    sizes = (replace(CASE, device="cuda"), Case(5, 6, 7, device="cuda", requires_grad=("weights", "bias")))
    stage = stage_implementation(stages.find_stage(6), "cuda")
    graphs = [under_cuda_graph(one) for one in (eager, *baselines("cuda", ())[1:2], stage)]
    for case in sizes:  # graphs of the first size are not replayed for the second
        rows, not_run = cell_times.measure_cell([eager, stage, *graphs], case, TINY)
        assert not_run == []
        saved = {row["name"]: row["saved_bytes"] for row in rows}
        assert saved["CUDA graph of eager"] == saved["eager"]
        assert saved["CUDA graph of stage 6"] == saved["stage 6"]
        assert "CUDA graph of torch.compile" in saved
        assert {row["stage"] for row in rows if row["name"].startswith("CUDA graph")} == {None}


@pytest.mark.needs("gpu")
def test_a_wrong_cell_under_a_cuda_graph_is_refused(eager):
    def lltm(*arguments):
        new_h, new_cell = eager.function(*arguments)
        return new_h, new_cell + 1e-3

    wrong = under_cuda_graph(Implementation("stage 2", lltm))
    with pytest.raises(
        WrongResult, match="CUDA graph of stage 2 is not timed: before it is timed, new_cell is wrong"
    ):
        cell_times.measure_cell([eager, wrong], replace(CASE, device="cuda"), TINY)


FAULTS = """
import resource
import torch
from common.measure import clock
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        [torch.ones(2**20) for _ in range(5)]  # at once, as the buffers of a call
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults())
clock.interleave([lambda: None], "cpu", 1, 0.0)
print(faults())
"""


def test_what_is_timed_needs_no_new_pages_for_each_tensor():
    printed = subprocess.run(
        [sys.executable, "-c", FAULTS], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    before, after = map(int, printed.split())
    assert before >= 250  # at least one for each tensor
    assert after <= before / 5  # some: a tensor may get another place than the one before it
