"""Stage 8's server: its times beside those of a server in Python, and its memory under load."""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

STUDY = Study(
    "serving",
    commands=(
        Command(
            "serving",
            "time stage 8's server against the same model in Python",
            "studies.serving.recorder:measure_serving",
            builds=True,
        ),
        Command(
            "serving-load",
            "keep stage 8's server busy for minutes, beside slow clients, and watch its memory",
            "studies.serving.load:hold_load",
            (
                argument("--minutes", type=float, default=5.0, help="how long"),
                argument("--slow", type=int, default=1000, help="clients that send byte by byte; at most 1000"),
            ),
            builds=True,
        ),
    ),
    parts=("", "cuda"),
    tables={"serving": "studies.serving.table:serving_table"},
)
