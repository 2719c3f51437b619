"""The study of scaling: what it records, what it reads from a trace, and when it refuses."""

from __future__ import annotations

import json

import pytest
import torch

from common.build import modules
from common.check.distributed import ROUNDING
from common.errors import UserError
from common.studies.distributed import STUDY, scaling
from common.studies.distributed.scaling_chart import plot_scaling
from common.studies.distributed.traces import measure_communication
from support.proofs.files import stage_files

pytestmark = [
    pytest.mark.needs("sklearn", "matplotlib", "g++"),
    pytest.mark.proof("stages' tests", files=[*stage_files(7, 9), "docs/results/studies/distributed_scaling.json"]),
]
TINY = scaling.Plan(layers=2, state=8, weak_batch=3, strong_batch=6, warm_up=1, rounds=1, calls=1)


@pytest.mark.syllabus("9.2d")
def test_steps_of_one_process_and_of_two_are_recorded(tmp_path):
    path = tmp_path / "scaling.json"
    record = scaling.measure_scaling("cpu", [1, 2], path, TINY)
    assert json.loads(path.read_text()) == record
    found = [(row["scaling"], row["processes"], row["batch"]) for row in record["rows"]]
    assert found == [("weak", 1, 3), ("weak", 2, 6), ("strong", 1, 6), ("strong", 2, 6)]
    assert all(row["step"] > 0 for row in record["rows"])
    assert {row["parameters"] for row in record["rows"]} == {24 * (9 + 1) + 24 * (16 + 1) + 10 * (8 + 1)}
    assert set(record["sources"]) == {"7", "9"}
    [two] = record["gradients"]
    assert (two["processes"], two["equal"]) == (2, True)
    assert two["difference"] <= ROUNDING


def test_gradients_that_differ_are_an_error(monkeypatch):
    monkeypatch.setattr(scaling, "launch", lambda *given, logs: [(False, 1e-15), (False, 2e-3)])
    with pytest.raises(UserError, match=r"^the gradients of 2 processes differ by 2\.0e-03 from those of one$"):
        scaling.compare_gradients("cpu", 2)


def event(name: str, start: float, duration: float, kind: str = "kernel") -> dict:
    return {"name": name, "ts": start, "dur": duration, "cat": kind}


def test_the_trace_of_a_step_has_its_work_on_the_gpu_in_order():
    events = [
        event("training step 1", 100, 50, "user_annotation"),
        event("training step 2", 200, 50, "user_annotation"),
        event("aten::mm", 201, 9, "cpu_op"),
        event("an earlier kernel", 199, 5),
        event("gemm", 212, 20),
        event("Memset (Device)", 210, 1, "gpu_memset"),
        event("Memcpy DtoH", 245, 10, "gpu_memcpy"),
        event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 220, 15),
        event("a later kernel", 251, 5),
        {"name": "an event without a time", "ph": "M"},
    ]
    assert scaling.intervals_of(events, "training step 2") == [
        ("compute", 0, 1),
        ("compute", 2, 22),
        ("communication", 10, 25),
        ("compute", 35, 45),
    ]


def test_the_numbers_of_processes_are_powers_of_two():
    assert [scaling.process_counts(gpus) for gpus in (1, 2, 3, 8)] == [[1], [1, 2], [1, 2], [1, 2, 4, 8]]


@pytest.mark.parametrize("gpus", [0, 1])
def test_fewer_than_two_gpus_are_refused(gpus, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(UserError, match=f"^scaling needs 2 GPUs or more, and torch finds {gpus} here$"):
        scaling.record_scaling(str(tmp_path / "scaling.json"))
    assert not (tmp_path / "scaling.json").exists()


@pytest.mark.syllabus("9.2d")
def test_the_last_layer_s_gradients_are_the_first_bucket():
    """With the recorded network, in one process on the CPU: DDP fills the buckets in the order of backward."""
    stage9 = modules.load_stage(9)
    processes = stage9.Processes(0, 1, 0, 1, 60.0)
    with processes.connected({}):
        training = scaling.make_training(processes, torch.device("cpu"), 1, scaling.Plan())
        training.parallel._set_ddp_runtime_logging_sample_rate(1)
        for _ in range(3):  # the first pass shows the order; the second one fills new buckets
            training.update(torch.arange(1))
        buckets = training.parallel._get_ddp_logging_data()["rebuilt_per_bucket_param_indices"].split(", ")
    names = [name for name, _ in training.network.named_parameters()]
    first, second = ({names[int(k)].rpartition(".")[0] for k in bucket.split()} for bucket in buckets)
    assert first == {"head", "recurrence.layers.3"}
    assert second == {f"recurrence.layers.{k}" for k in range(3)}


@pytest.mark.syllabus("9.2d")
def test_the_record_is_whole():
    record = STUDY.read_record("scaling")
    assert record["device"] == "cuda"
    assert record["machine"]["gpu"]
    assert [row["processes"] for row in record["gradients"]] == [2, 4]
    assert all(row["difference"] <= ROUNDING for row in record["gradients"])
    for row in record["rows"]:
        trace = record["traces"][f"{row['scaling']} {row['processes']}"]
        told = {name: row[name] for name in ("communication", "not_hidden")}
        assert measure_communication(trace) == pytest.approx(told, abs=0.3)  # the trace's times are rounded
        assert (row["communication"] > 0) == (row["processes"] > 1)


def test_the_chart_has_a_bar_for_each_row():
    record = STUDY.read_record("scaling")
    steps, trace = plot_scaling(record).axes
    labels = [label.get_text() for label in steps.get_yticklabels()]
    assert labels == [
        f"{row['scaling']}, {row['processes']} GPU{'s' * (row['processes'] > 1)}, batch {row['batch']}"
        for row in record["rows"]
    ]
    assert [bar.get_width() for bar in steps.patches] == [row["step"] / 1e3 for row in record["rows"]]
    assert len(trace.collections) == 3
