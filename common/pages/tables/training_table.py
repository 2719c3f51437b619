"""What is recorded of stage 9, in words: the trainings of the chart, and those whose processes were killed."""

from __future__ import annotations

import json

from ...results import records, sources
from ...stages import get_stage


def training_summary() -> str:
    """One line for each record, with a mark if the sources of stage 9 have changed since."""
    trained, killed = (json.loads(path.read_text()) for path in (records.TRAINING_RECORD, records.KILLS_RECORD))
    seconds = {(row["cell"], row["stage"]): row["seconds"] for row in trained["rows"]}
    cells = {"lltm": "1", "lstm": "nn", "gru": "nn"}
    ratios = ", ".join(f"{seconds[cell, old] / seconds[cell, '7']:.1f} ({cell})" for cell, old in cells.items())
    stale = " **Stale: the sources have changed since.**"
    marks = [
        stale * (source != sources.hash_modules(get_stage(9).folder))
        for source in (trained["sources"]["9"], killed["sources"])
    ]
    dates = [record["date"][:10] for record in (trained, killed)]
    return (
        f"- Training ({dates[0]}): stage 7 is {ratios} times as fast as stage 1 or `torch.nn`.{marks[0]}\n"
        f"- Kills ({dates[1]}): {killed['kills']} at random moments, {killed['while_writing']} of them while a "
        f"checkpoint was written. Weights, optimizer and losses are those of the undisturbed run.{marks[1]}"
    )
