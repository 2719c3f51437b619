"""The table of mutants."""

from __future__ import annotations

from common import study
from common.exercises import every, find
from common.results import records
from common.studies.mutate import STUDY
from common.studies.mutate.recorder import hash_exercise
from common.studies.mutate.table import mutation_table


def test_mutants(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    assert mutation_table() == "Nothing is recorded yet: `make mutate EX=all`."
    row = {"killed": 18, "survived": 0, "equivalent": 1, "not_viable": 2}
    sources = {"3/guard": hash_exercise(find("3/guard")), "3/launch": "of other sources"}
    rows = [{"exercise": name, **row} for name in sources]
    records.save({"sources": sources, "rows": rows}, STUDY.record())
    of_stage = sum(exercise.stage == 3 for exercise in every())
    table = mutation_table()
    assert f"\n| 3 | 2 of {of_stage} | 36 | 0 | 2 | 4 |\n" in table
    assert table.endswith("\n\nChanged since: 3/launch.")
