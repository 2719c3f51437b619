"""Whole sequences on a GPU: the sweep of sizes, what bounds a step, and driver.cu, which runs the kernels alone."""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

OUTPUT = argument("--output", help="the record to write, instead of the one in docs/results/studies/")

STUDY = Study(
    "sequence",
    commands=(
        Command(
            "sequence-sweep",
            "time stage 7 and cuDNN over many sizes, on a GPU",
            "studies.sequence.sweep:record_sweep",
            (
                argument("--seconds", type=float, default=280, help="start no size after so many seconds"),
                OUTPUT,
            ),
            builds=True,
        ),
        Command(
            "sequence-limits",
            "time the barriers, exchanges and products of a step",
            "studies.sequence.limits:record_limits",
            (OUTPUT,),
        ),
        Command(
            "sequence-check",
            "check stage 7 and show every failure",
            "studies.sequence.check:check_sequence",
            (
                argument("--target", help="cuda, host or emulator; by default the best for this machine"),
                argument("--rungs", nargs="*", default=[], help="by default all of the target"),
                argument("--dtypes", nargs="*", help="such as bfloat16; by default all"),
                argument("--seed", type=int, help="of an earlier failure"),
                argument("--seconds", type=float, default=300, help="end the process after so many seconds"),
                argument("--output", help="a JSON file for all rows"),
            ),
            builds=True,
        ),
    ),
    parts=("sweep", "limits"),
)
