"""Mutation testing of the exercises' checks: each small change to a solution must make its check fail."""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

STUDY = Study(
    "mutate",
    commands=(
        Command(
            "mutate",
            'find small changes to the solution that a check accepts: EX="3/guard 3/launch", EX=all',
            "studies.mutate.recorder:mutate",
            (
                argument("names", metavar="exercise", nargs="+", help="such as 3/guard, or all"),
                argument("--jobs", type=int, help="mutants at a time; by default half of the cores"),
            ),
            builds=True,
            variables={"names": "EX", "--jobs": "JOBS"},
        ),
    ),
    tables={"mutation": "studies.mutate.table:mutation_table"},
)
