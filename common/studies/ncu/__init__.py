"""The emulator's counts beside Nsight Compute's, for the kernels of every stage and for microbenchmarks."""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

STUDY = Study(
    "ncu",
    commands=(
        Command(
            "ncu",
            "compare the emulator's counts with Nsight Compute's, on a GPU",
            "studies.ncu.recorder:record_ncu_counts",
            (
                argument("--emulator", dest="emulator_only", action="store_true", help="only the emulator's counts"),
                argument("--stage", dest="only", type=int, help="only this one; the record of the others stays"),
            ),
            builds=True,
        ),
    ),
    tables={"ncu": "studies.ncu.table:ncu_table"},
)
