"""What is recorded of stage 9, in words: trainings with each stage, trainings with killed processes, and scaling."""

from __future__ import annotations

from collections.abc import Callable

from ...results import sources
from ...stages import get_stage
from . import STUDY
from .traces import ideal_step

STALE = " **Stale: the sources have changed since.**"


def training_summary() -> str:
    """One line for each record, with a mark if the sources of stage 9 have changed since."""
    lines = (
        summarise("training", describe_training),
        summarise("kills", describe_kills),
        summarise("scaling", describe_scaling),
    )
    return "\n".join(lines)


def summarise(part: str, describe: Callable[[dict], str]) -> str:
    """The line of a record."""
    if not (record := STUDY.read_record(part)):
        return f"- {part.capitalize()}: not recorded yet, `make distributed-{part}`."
    measured = record["sources"]["9"] if isinstance(record["sources"], dict) else record["sources"]
    mark = STALE * (measured != sources.hash_stage(get_stage(9)))
    return f"- {part.capitalize()} ({record['date'][:10]}): {describe(record)}{mark}"


def describe_training(record: dict) -> str:
    """How much faster stage 7 is."""
    seconds = {(row["cell"], row["stage"]): row["seconds"] for row in record["rows"]}
    cells = {"lltm": "1", "lstm": "nn", "gru": "nn"}
    ratios = ", ".join(f"{seconds[cell, old] / seconds[cell, '7']:.1f} ({cell})" for cell, old in cells.items())
    return f"stage 7 is {ratios} times as fast as stage 1 or `torch.nn`."


def describe_kills(record: dict) -> str:
    """How many kills, and that nothing was lost: otherwise there would be no record."""
    return (
        f"{record['kills']} at random moments, {record['while_writing']} of them while a checkpoint was written. "
        "Weights, optimizer and losses are those of the undisturbed run."
    )


def describe_scaling(record: dict) -> str:
    """The efficiency on most GPUs, and the share of communication in a step."""
    most = max(row["processes"] for row in record["rows"])
    rows = {row["scaling"]: row for row in record["rows"] if row["processes"] == most}
    efficiency = {name: ideal_step(row, record["rows"]) / row["step"] for name, row in rows.items()}
    share = {name: row["communication"] / row["step"] for name, row in rows.items()}
    return (
        f"on {most} GPUs ({record['machine']['gpu']}), the efficiency of weak scaling is {efficiency['weak']:.0%}, "
        f"that of strong scaling {efficiency['strong']:.0%}. Communication takes {share['weak']:.1%} and "
        f"{share['strong']:.1%} of a step."
    )
