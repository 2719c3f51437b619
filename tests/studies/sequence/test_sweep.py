"""The sweep of sequences: what is measured when, and its picture."""

from __future__ import annotations

import json
import statistics
from contextlib import nullcontext

import pytest

from common.errors import UserError
from common.results.formatting import PASSES
from common.stages import find_stage
from common.studies.sequence import STUDY, sweep, sweep_chart
from support import measurement


def sweep_rows(**medians: float) -> list[dict]:
    facts = {"cell": "lstm", "B": 8, "S": 64, "dtype": "bfloat16", "maths": "IEEE"}
    return [
        {"name": name.replace("_", " "), "median": median, "T": T, "pass": which, **facts}
        for T in (32, 128)
        for which in ("forward", "forward+backward")
        for name, median in medians.items()
    ]


@pytest.fixture
def sweep_of_three(monkeypatch):
    """A sweep of three sizes on one GPU, in this process, without measurements."""
    configurations = [*sweep.sweep_configurations()][:3]

    def measure(configuration):
        facts = {**vars(configuration), "device": "cuda"}
        return [{**row, **facts} for row in sweep_rows(cuDNN_LSTM=2.0)], []

    monkeypatch.setattr(sweep, "build_stage", lambda *_: None)
    monkeypatch.setattr(sweep, "new_process", lambda: nullcontext(lambda function, *given: function(*given)))
    monkeypatch.setattr(sweep.torch.cuda, "set_device", lambda _: None)
    monkeypatch.setattr(sweep, "run_on_each_gpu", lambda function: function(0))
    monkeypatch.setattr(sweep, "sweep_configurations", lambda: configurations)
    monkeypatch.setattr(sweep, "measure_size", measure)


def test_the_sweep_is_written_as_it_goes(tmp_path, monkeypatch, sweep_of_three):
    path, clock = tmp_path / "sweep.json", iter([0.0, 1.0, 2.0, 10.0])
    monkeypatch.setattr(sweep.time, "monotonic", lambda: next(clock))
    record = sweep.measure_sweep(5.0, path)
    assert json.loads(path.read_text()) == record
    assert len({sweep.size_of(row) for row in record["rows"]}) == 2
    assert [entry["reason"] for entry in record["not_run"]] == ["the time was over"]
    assert {"date", "machine", "versions", "sources"} <= record.keys()


def test_the_next_sweep_measures_what_is_left(tmp_path, monkeypatch, sweep_of_three):
    path, measured = tmp_path / "sweep.json", []
    clock = iter([0.0, 1.0, 10.0])
    with monkeypatch.context() as patch:
        patch.setattr(sweep.time, "monotonic", lambda: next(clock))
        first = sweep.measure_sweep(5.0, path)
    measure = sweep.measure_size
    monkeypatch.setattr(sweep, "measure_size", lambda one: measured.append(one) or measure(one))
    second = sweep.measure_sweep(60.0, path)
    assert (len(measured), second["not_run"]) == (2, [])
    assert second["rows"][: len(first["rows"])] == first["rows"]
    monkeypatch.setattr(sweep.sources, "hash_stage", lambda _: "other sources")
    assert sweep.continue_record(path)["rows"] == []


def test_a_gpu_measures_gru_and_ieee_too():
    kinds = {(one.cell, one.dtype, one.maths) for one in sweep.sweep_configurations()}
    assert {("lstm", "bfloat16", "IEEE"), *sweep.OTHERS} == kinds
    sizes = [sweep.size_of(vars(one)) for one in sweep.sweep_configurations()]
    assert len(set(sizes)) == len(sizes) == 120


def test_the_picture_shows_who_is_fastest_and_stage_7s_own_choice():
    rows = sweep_rows(cuDNN_LSTM=6.0) + [
        {**row, "name": f"stage 7, {rung}", "median": median}
        for rung, median in (("loop", 8.0), ("cluster", 2.0))
        for row in sweep_rows(x=0)
    ]
    rows += [{**row, "name": "stage 7", "median": 3.0} for row in sweep_rows(x=0)]
    group = sweep_chart.by_size(rows)[0]
    assert sweep_chart.fastest_rung(group)["name"] == "stage 7, cluster"
    assert sweep_chart.speedup_over_cudnn(group) == 2.0
    assert sweep_chart.speedup_over_cudnn(group[:1]) is None
    record = measurement.measurement(gpu="Loom 3") | {"rows": rows}
    figure = sweep_chart.plot_sweep(record)
    texts = [text.get_text() for axis in figure.axes for text in axis.texts]
    assert texts == ["2.0"] * 4
    with pytest.raises(UserError, match="the sweep has no lstm in float64"):
        sweep_chart.plot_sweep(record, "lstm", "float64")


def test_the_readme_says_what_was_recorded():
    text = (find_stage(7).folder / "README.md").read_text()
    record = STUDY.read_record("sweep")
    for name, kind in {
        "LSTM, bfloat16": ("lstm", "bfloat16", "IEEE"),
        "GRU, bfloat16": ("gru", "bfloat16", "IEEE"),
        "LSTM, TF32": ("lstm", "float32", "TF32"),
        "LSTM, IEEE float32": ("lstm", "float32", "IEEE"),
    }.items():
        cells = []
        for which in PASSES:
            groups = sweep_chart.by_size(sweep_chart.rows_of(record, *kind))
            every = [sweep_chart.speedup_over_cudnn(group) for group in groups if group[0]["pass"] == which]
            found = [speedup for speedup in every if speedup is not None]
            cells.append(f"{statistics.median(found):.1f} ({min(found):.1f} to {max(found):.1f})")
        assert f"| {name} | {len(found)} | {' | '.join(cells)} |" in text
