"""The tour shows its last times again while nothing that they depend on has changed, and only then."""

from __future__ import annotations

import json

import pytest

from common import stages
from common.measure import bench, last_tour
from common.measure.sequence import times
from common.results import records, schema

TIMED = stages.timed_stages()
PASSES = ("forward", "forward+backward")


def cell_row(name: str, size: tuple[int, int, int], which: str) -> dict:
    facts = dict(zip("BIS", size, strict=True)) | {"device": "cpu", "dtype": "float32", "maths": "IEEE", "threads": 2}
    kept = {"saved_bytes": 1024, "saved_input_bytes": 0, "saved_output_bytes": 0, "build_seconds": None}
    row = {"name": name, "stage": None, "target": None, "pass": which, "grads": "all", "samples": 20, "ratio": 1.0}
    return row | facts | kept | {"median": 71.0, "q1": 70.0, "q3": 72.0}


def sequence_row(configuration: times.Configuration, which: str) -> dict:
    row = cell_row("torch.nn LSTM", (configuration.B, configuration.I, configuration.S), which)
    del row["grads"]
    return row | {"cell": configuration.cell, "T": configuration.T, "baseline": "torch.nn LSTM", "peak_bytes": 2**20}


@pytest.fixture
def last(tmp_path, monkeypatch) -> dict:
    """A measurement of the present stages on this machine, in out/bench.json."""
    monkeypatch.setattr(records, "MEASURED", tmp_path / "bench.json")
    monkeypatch.setattr(bench, "available_devices", lambda: ["cpu"])
    record = {"schema": schema.SCHEMA, "quick": True, **records.start_record(bench.hash_stages(TIMED))}
    rows = [cell_row("eager", size, which) for size in bench.TOUR.sizes["cpu"] for which in PASSES]
    sequences = [sequence_row(one, which) for one in times.TOUR.configurations["cpu"] for which in PASSES]
    record |= {"rows": rows, "sequences": sequences, "kernels": [], "not_run": [], "repeats": []}
    records.write_result(record, records.MEASURED)
    return record


def find() -> dict | None:
    return last_tour.find_last(bench.TOUR, "cpu", bench.hash_stages(TIMED))


def test_it_is_shown_again_and_nothing_is_measured(last, monkeypatch, capsys):
    monkeypatch.setattr(bench, "measure_stages", lambda *arguments: pytest.fail("it measures"))
    assert bench.measure_for_tour(TIMED)["rows"] == last["rows"]
    printed = capsys.readouterr().out
    assert "nothing has changed since (`make bench` measures again)" in printed
    assert printed.count("71.0 us (70.0 to 72.0)") == 4
    assert "LSTM T128 B16 I32 S128, float32 (IEEE) on CPU tensors:" in printed


def changed(record: dict, what: str) -> object:
    """What out/bench.json contains after a change."""
    if what == "a stage":
        record["sources"]["6"] = "0" * 20
    elif what == "a stage that is not there now":
        record["sources"]["70"] = "0" * 20
    elif what == "torch":
        record["versions"]["torch"] = "1.0"
    elif what == "the machine":
        record["machine"]["cpu"] = "another one"
    elif what == "a full measurement":
        record["quick"] = False
    elif what == "an interrupted measurement":
        record["sequences"] = record["sequences"][:2]
    elif what == "a size is missing":
        record["rows"] = record["rows"][:2]
    elif what == "it was disturbed":
        record["rows"][0]["q3"] = 7000.0
    return record if what != "damaged" else []


@pytest.mark.parametrize(
    "what",
    [
        "a stage",
        "a stage that is not there now",
        "torch",
        "the machine",
        "a full measurement",
        "an interrupted measurement",
        "a size is missing",
        "it was disturbed",
        "damaged",
    ],
)
def test_after_a_change_it_is_measured_again(last, monkeypatch, what):
    assert find() is not None
    records.MEASURED.write_text(json.dumps(changed(last, what)))
    assert find() is None
    monkeypatch.setattr(bench, "measure_stages", lambda *arguments: "measured")
    assert bench.measure_for_tour(TIMED) == "measured"


def test_a_gpu_whose_clocks_have_changed_is_the_same(last):
    last["machine"]["gpu_clocks_mhz"] = {"sm": 345, "memory": 2619, "sm_max": 1980, "memory_max": 3201}
    records.MEASURED.write_text(json.dumps(last))
    assert find() is not None


def test_without_a_measurement_there_is_none(last):
    records.MEASURED.unlink()
    assert find() is None
