"""The record of `make mutate` as a table: how many wrong answers, made of the solutions, the checks refuse."""

from __future__ import annotations

import json

from ...exercises import every
from ...exercises.mutation.run import OUTCOMES, hash_exercise
from ...results import records
from ..markdown import markdown_table


def mutation_table() -> str:
    """A row for each stage, and which exercises have changed since they were recorded."""
    if not records.MUTATION_RECORD.exists():
        return "Nothing is recorded yet: `make mutate EX=all`."
    record = json.loads(records.MUTATION_RECORD.read_text())
    recorded = {row["exercise"]: row for row in record["rows"]}
    rows = []
    for stage in sorted({exercise.stage for exercise in every()}):
        of_stage = [exercise.id for exercise in every() if exercise.stage == stage]
        done = [recorded[name] for name in of_stage if name in recorded]
        counts = [str(sum(row[outcome.replace(" ", "_")] for row in done)) for outcome in OUTCOMES]
        rows.append([str(stage), f"{len(done)} of {len(of_stage)}", *(counts if done else ["–"] * len(counts))])
    stale = [one.id for one in every() if one.id in recorded and record["sources"].get(one.id) != hash_exercise(one)]
    marked = f"\n\nChanged since: {', '.join(stale)}." if stale else ""
    return markdown_table(["stage", "exercises recorded", *OUTCOMES], rows, left=2) + marked
