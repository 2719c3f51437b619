"""The studies of stage 9: what they record, and what they refuse to record."""

from __future__ import annotations

import json

import pytest

from common.errors import UserError
from common.results import sources
from common.studies.distributed import STUDY, kills, training
from common.studies.distributed.table import training_summary
from common.studies.distributed.training_chart import plot_training

pytestmark = pytest.mark.needs("sklearn", "matplotlib")


def test_a_training_is_recorded_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "IMPLEMENTATIONS", (("lltm", "1"), ("lltm", "3"), ("gru", "nn")))
    monkeypatch.setattr(training, "runs_on", lambda stage, device: stage != "3")
    monkeypatch.setattr(training, "ROUNDS", 1)
    record = training.measure_training("rows", 100, tmp_path / "training.json")
    assert json.loads((tmp_path / "training.json").read_text()) == record
    assert [(row["cell"], row["stage"]) for row in record["rows"]] == [("lltm", "1"), ("gru", "nn")]
    assert record["not_run"] == [{"cell": "lltm", "stage": "3"}]
    assert all(row["history"][-1]["step"] == 100 and row["seconds"] > 0 for row in record["rows"])
    figure = plot_training(record)
    assert [text.get_text() for text in figure.axes[1].get_yticklabels()] == ["LLTM, stage 1", "GRU, torch.nn"]
    assert len(figure.axes[0].lines) == 2


def test_without_a_gpu_stages_3_and_4_are_not_trained():
    assert [s for _, s in training.IMPLEMENTATIONS[:7] if not training.runs_on(s, "cpu")] == ["3", "4"]
    assert all(training.runs_on(stage, "cuda") for _, stage in training.IMPLEMENTATIONS)


@pytest.mark.syllabus("9.2c")
def test_kills_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(kills, "STEPS_A_KILL", 600)
    record = kills.measure_kills(1, 5, tmp_path / "kills.json")
    assert json.loads((tmp_path / "kills.json").read_text()) == record
    assert (record["kills"], len(record["moments"])) == (1, 1)


def test_what_differs_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(kills, "launch", lambda *arguments, **options: None)
    monkeypatch.setattr(kills, "train_and_kill", lambda *arguments: [{"newest": 40, "is_writing": False}])
    monkeypatch.setattr(kills, "differences", lambda *folders: [])
    for outputs, lost in (
        (["step 20", "continues after step 20"], True),
        (["step 20", "continues after step 40"], 0),
    ):
        monkeypatch.setattr(kills, "read_output", lambda logs, outputs=outputs: outputs)
        if lost:
            with pytest.raises(UserError, match="lost"):
                kills.measure_kills(1, 5, tmp_path / "kills.json")
            assert not (tmp_path / "kills.json").exists()
        else:
            assert kills.measure_kills(1, 5, tmp_path / "kills.json")["kills"] == 1
    monkeypatch.setattr(kills, "differences", lambda *folders: [".network.head.bias"])
    with pytest.raises(UserError, match=r"different in \['.network.head.bias'\]"):
        kills.measure_kills(1, 5, tmp_path / "other.json")


def test_the_first_step_of_a_process():
    assert kills.first_step("") is None
    assert kills.first_step("step    20   loss 1\nstep 40 loss 1") == 0
    assert kills.first_step("something\ncontinues after step 60\nstep     80   loss 1") == 60


def test_the_records_are_whole():
    killed = STUDY.read_record("kills")
    assert killed["kills"] >= 50
    assert killed["kills"] == len(killed["moments"])
    assert killed["while_writing"] > 0
    trained = STUDY.read_record("training")
    for cell in ("lltm", "lstm", "gru"):
        ends = [row["history"][-1]["accuracy"] for row in trained["rows"] if row["cell"] == cell]
        assert len(ends) >= 2
        assert max(ends) - min(ends) < 0.02  # a few of 360 samples
        assert min(ends) > 0.9


def test_a_record_of_other_sources_is_marked(monkeypatch):
    monkeypatch.setattr(sources, "hash_stage", lambda stage: "another")
    assert training_summary().count("Stale") == 3
