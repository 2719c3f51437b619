"""The record of mutants as a table."""

from __future__ import annotations

from ...exercises import every
from ...pages.markdown import markdown_table
from . import STUDY
from .recorder import OUTCOMES, hash_exercise


def mutation_table() -> str:
    """The record of `make mutate`: a row for each stage, and the exercises that have changed since."""
    if not (record := STUDY.read_record()):
        return "Nothing is recorded yet: `make mutate EX=all`."
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
