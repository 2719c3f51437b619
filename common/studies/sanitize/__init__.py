"""The kernels of every stage under compute-sanitizer's four tools."""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

STUDY = Study(
    "sanitize",
    commands=(
        Command(
            "sanitize",
            "run every kernel under compute-sanitizer, on a GPU",
            "studies.sanitize.recorder:run_sanitizer",
            (argument("--stage", dest="only", type=int, help="only this one; the record of the others stays"),),
            builds=True,
        ),
    ),
    tables={"sanitizer": "studies.sanitize.table:sanitizer_table"},
)
