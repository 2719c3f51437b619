"""What each optimisation of stage 6 gains: left out of the stage, and alone."""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

ABLATION_PARTS = ("cuda", "cpu", "kernels", "counts")
STUDY = Study(
    "ablation",
    commands=(
        Command(
            "ablation",
            "time stage 6 without each optimisation, and with each alone; writes out/ablation.json, or RECORD=...",
            "studies.ablation.recorder:measure_ablation",
            (
                argument("--out", help="the JSON file to write (by default out/ablation.json)"),
                argument("--only", nargs="+", default=[], choices=ABLATION_PARTS, help="some of its parts"),
            ),
            builds=True,
            variables={"--out": "RECORD", "--only": "ONLY"},
        ),
    ),
    tables={
        "ablation": "studies.ablation.table:recorded_table",
        "ablation-summary": "studies.ablation.table:recorded_summary",
    },
)
