"""The emulator's speed: what is measured when, and the table."""

from __future__ import annotations

import os

from common import study
from common.results import records
from common.studies.emulator_speed import STUDY, recorder
from common.studies.emulator_speed.table import speed_table


def test_elapsed_times_are_measured_only_if_no_other_work_needs_the_cores(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    assert recorder.choose_modes() == list(recorder.MODES)
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0, 0.0, 0.0))
    assert recorder.choose_modes() == [mode for mode in recorder.MODES if mode != recorder.ALL_CORES]


def test_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    assert speed_table() == "Not measured yet: `make emulator-speed`."
    rows = [
        {"name": "a barrier", "operations": 1000, "seconds": {"checked": 12.34e-6, "unchecked, one core": 2e-6}},
        {"name": "both products", "operations": 1, "seconds": {"checked": 15.24}},
    ]
    facts = {"date": "2026-03-14T15:09:26Z", "machine": {"cores": 2}, "versions": {"g++": "12.2.0"}}
    record = facts | {"sources": recorder.hash_source(), "rows": rows}
    records.save(record, STUDY.record())
    text = speed_table()
    assert "| a barrier | 12.3 ns | 2.0 ns | not measured |\n" in text
    assert "| both products | 15.2 s | not measured | not measured |\n" in text
    assert text.endswith("\n\n2 cores, g++ 12.2.0, 2026-03-14.")
    records.save(record | {"sources": "others"}, STUDY.record())
    assert speed_table().endswith(" The program has changed since.")
