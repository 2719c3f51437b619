"""The measurement of sequences: its rows, what is refused, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from common import load
from common.errors import UserError
from common.measure import cell_times
from common.measure.implementations import Implementation, WrongResult, make_input_sets
from common.measure.passes import time_case
from common.measure.sequence import peers, times
from common.measure.sequence.times import Configuration, Plan
from common.results import records
from common.results.rows import describe_drift
from common.sequence.case import SequenceCase
from common.stages import find_stage
from support import measurement

TINY = Plan({"cpu": (), "cuda": ()}, rounds=2, block_seconds=1e-4)


def configuration_rows(*size: object, **options: object):
    return times.measure_configuration(Configuration(*size, **options), "cpu", "host", TINY)


@pytest.mark.needs("g++")
@pytest.mark.parametrize("cell", ["lltm", "lstm", "gru"])
def test_a_row_carries_every_fact(cell, monkeypatch):
    monkeypatch.setattr(peers, "LONGEST_COMPILED", 0)
    rows, not_run = configuration_rows(cell, 3, 2, 4, 5)
    result = measurement.measurement() | {"sequences": rows, "not_run": not_run}
    records.validate(result, records.MEASURED)
    first = {"lltm": "eager loop", "lstm": "torch.nn LSTM", "gru": "torch.nn GRU"}[cell]
    assert {row["baseline"] for row in rows} == {first}
    assert rows[0]["name"] == first
    assert rows[0]["ratio"] == 1
    assert [(row["stage"], row["target"]) for row in rows if row["name"] == "stage 7"] == [(7, "host")] * 2
    assert all(row["peak_bytes"] > 0 for row in rows)
    assert [entry["name"] for entry in not_run] == ["torch.compile of the loop"]
    assert "left out of runs of more than 0 steps" in not_run[0]["reason"]
    assert "stage 7" in times.format_rows(rows)


def test_a_wrong_sequence_is_not_timed():
    case = SequenceCase("lstm", 3, 2, 4, 5)
    right = peers.by_torch(case)

    def wrong(*arguments):
        outputs, h, cell = right(*arguments)
        return outputs, h, cell * 1.001

    sets = make_input_sets(case)
    with pytest.raises(WrongResult, match="wrong is not timed: before it is timed, cell is wrong"):
        time_case([Implementation("right", right), Implementation("wrong", wrong)], sets, "a case", 1, 0.0)
    rows, not_run = time_case(
        [Implementation("right", right), Implementation("wrong", wrong, may_fail=True)], sets, "a case", 1, 0.0
    )
    assert {row["name"] for row in rows} == {"right"}
    assert "cell is wrong" in not_run[0]["reason"]


@pytest.mark.needs("g++")
def test_every_peer_agrees_with_the_reference(monkeypatch):
    monkeypatch.setattr(peers, "LONGEST_COMPILED", 0)
    for cell in ("lltm", "lstm", "gru"):
        for reverse in (False, True) if cell == "lltm" else (False,):
            case = SequenceCase(cell, 4, 3, 2, 5, reverse=reverse)
            found, _ = peers.find_peers(case)
            loops = [replace(one, may_fail=False) for one in found]
            rows, not_run = time_case(loops, make_input_sets(case), "a case", 1, 0.0)
            assert not not_run
            assert {row["name"] for row in rows} == {one.name for one in loops}


@pytest.mark.needs("flashrnn")
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_flashrnn_gets_the_parameters_in_its_order(cell):
    case = SequenceCase(cell, 4, 3, 2, 8)
    given = [tensor.detach() for tensor in case.inputs().values()]
    for got, want in zip(peers.by_flashrnn(case, "vanilla")(*given), peers.by_torch(case)(*given), strict=True):
        torch.testing.assert_close(got, want)


def test_a_stage_without_code_for_a_device_is_named(monkeypatch):
    def refuse(*_):
        raise UserError("it has no code for CPU tensors\nand more")

    monkeypatch.setattr(times, "target_for", refuse)
    found = times.measure_part(Configuration("lltm", 2, 1, 1, 1), None, "cpu", find_stage(7), TINY, [])
    assert (found.get("sequences"), found["repeats"]) == (None, [])
    assert found["not_run"][0]["reason"] == "it has no code for CPU tensors"


def test_a_plan_is_measured_part_by_part_with_repeats_of_its_baseline(monkeypatch):
    first, second = Configuration("lltm", 2, 1, 1, 1), Configuration("lstm", 3, 2, 4, 5)
    monkeypatch.setattr(times, "measure_configuration", lambda *_: ([], [{"entry": 1}]))
    monkeypatch.setattr(times, "target_for", lambda *_: "host")
    monkeypatch.setattr(times, "format_rows", str)
    monkeypatch.setattr(cell_times, "warn_if_disturbed", lambda rows: "")
    plan = replace(TINY, configurations={"cpu": (first, second)}, repeats=True)
    repeats, called = [{"device": "cpu", "eager": 1}], []
    for function, *arguments in times.parts_of("cpu", find_stage(7), plan, repeats):
        called.append((function, arguments[0]))
        repeats += function(*arguments)["repeats"]
        if function is times.measure_part:  # it is compared with the baseline's times before it, not with eager's
            assert arguments[-1] == repeats[1:-1]
    assert called == [(times.settle_baseline, second), (times.measure_part, first), (times.measure_part, second)]
    repeat = repeats[-1]
    assert (repeat["name"], repeat["B"], repeat["I"], repeat["S"]) == ("torch.nn LSTM", 2, 4, 5)
    drifted = repeat | {"medians": {name: 2 * median for name, median in repeat["medians"].items()}}
    result = measurement.measurement() | {"repeats": [repeat, drifted]}
    records.validate(result, records.MEASURED)
    assert describe_drift(result).startswith("torch.nn LSTM's forward+backward at B2 I4 S5 on CPU tensors took")


def test_without_repeats_only_the_configurations_are_measured():
    plan = replace(TINY, configurations={"cpu": (Configuration("lstm", 3, 2, 4, 5),) * 2})
    parts = [function for function, *_ in times.parts_of("cpu", find_stage(7), plan, [])]
    assert parts == [times.measure_part] * 2


def test_float32_maths_is_as_before():
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    with peers.float32_maths("TF32"):
        assert torch.backends.cuda.matmul.allow_tf32
        assert torch.backends.cudnn.allow_tf32
        with peers.float32_maths("IEEE"):
            assert not torch.backends.cuda.matmul.allow_tf32
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == before


def test_a_wrong_result_leaves_out_its_configuration_only(monkeypatch):
    configurations = Configuration("lltm", 2, 1, 1, 1), Configuration("gru", 2, 1, 1, 1)

    def measure(configuration, *_):
        if configuration.cell == "lltm":
            raise WrongResult("stage 7 is not timed: outputs is wrong")
        return measured

    measured = configuration_rows("gru", 2, 1, 1, 1)
    monkeypatch.setattr(times, "target_for", lambda *_: "host")
    monkeypatch.setattr(times, "measure_configuration", measure)
    plan = replace(TINY, configurations={"cpu": configurations})
    found: dict[str, list] = {"sequences": [], "not_run": [], "repeats": []}
    for function, *arguments in times.parts_of("cpu", find_stage(7), plan, []):
        for part, entries in function(*arguments).items():
            found[part] += entries
    assert {row["cell"] for row in found["sequences"]} == {"gru"}
    (left_out,) = (entry for entry in found["not_run"] if entry["name"] == "every implementation")
    assert left_out["reason"] == "stage 7 is not timed: outputs is wrong"
    assert left_out["what"].startswith("LLTM T2 B1")


@pytest.mark.needs("g++")
def test_make_stage_7_ends_with_a_comparison(monkeypatch, capsys):
    glance = replace(TINY, configurations={"cpu": (Configuration("lltm", 3, 2, 4, 5),)})
    monkeypatch.setattr(times, "GLANCE", glance)
    monkeypatch.setattr(peers, "LONGEST_COMPILED", 0)
    rows = times.compare_sequences("host", "cpu")
    assert {"eager loop", "stage 7"} <= {row["name"] for row in rows}
    assert "stage 7" in capsys.readouterr().out
    assert times.compare_sequences("emulator", "cpu") == []
    assert load(7, "host").lltm_sequence
