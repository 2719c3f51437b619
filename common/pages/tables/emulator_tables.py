"""The tables of docs/emulator.md: the features of CUDA that the emulator supports, and how long it takes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ...emulator import fingerprint
from ...results import records
from ...studies import emulator_speed
from ...studies.programs.features import Feature, read_features
from ...studies.public_extensions import study
from ...studies.public_programs import programs
from ...studies.public_programs import study as programs_study
from ..markdown import markdown_table


def features_table(page: Path) -> str:
    """A row for each program of common/emulator/programs/features; each topic stands in its first row only."""
    rows: list[list[str]] = []
    topic = ""
    for feature in read_features():
        name = os.path.relpath(feature.program, page.parent)
        title = feature.title.replace("_", r"\_")
        rows.append(["" if feature.topic == topic else feature.topic, f"[{title}]({name})", support(feature)])
        topic = feature.topic
    return markdown_table(["topic", "feature", "support"], rows, left=3)


def support(feature: Feature) -> str:
    """What the table says about the support of a feature."""
    if feature.support == "refused":
        return f"refused: `{feature.detail}`"
    return f"{feature.support}: {feature.detail}" if feature.detail else feature.support


def speed_table() -> str:
    """The time of each operation, by mode; below it the machine and the date."""
    if not records.SPEED_RECORD.exists():
        return "Not measured yet: `python -m common.studies.emulator_speed`."
    record = json.loads(records.SPEED_RECORD.read_text())
    rows = [
        [row["name"], *(time_text(row["seconds"].get(mode), row["operations"]) for mode in emulator_speed.MODES)]
        for row in record["rows"]
    ]
    table = markdown_table(["operation", *emulator_speed.MODES], rows)
    stale = "" if record["sources"] == emulator_speed.hash_source() else " The program has changed since."
    machine = f"{record['machine']['cores']} cores, g++ {record['versions']['g++']}, {record['date'][:10]}."
    return f"{table}\n\n{machine}{stale}"


def time_text(seconds: float | None, operations: float) -> str:
    """The time of one operation: "12.3 ns", or "15.2 s" for a whole program."""
    if seconds is None:
        return "not measured"
    return f"{seconds:.1f} s" if operations == 1 else f"{seconds / operations * 1e9:.1f} ns"


def stale_note(record: dict) -> str:
    """A sentence if the emulator is another one than that of a record, otherwise empty."""
    return "" if record["sources"] == fingerprint().hex() else " The emulator has changed since."


def public_extensions_table() -> str:
    """The outcome of each trial of a public extension; below it the versions and the date."""
    if not study.RECORD.exists():
        return "Not recorded yet: `python -m common.studies.public_extensions.study`."
    record = json.loads(study.RECORD.read_text())
    rows, package = [], ""
    for row in record["rows"]:
        name = f"{row['package']} {row['version']}"
        extension = row["extension"].rpartition(".")[2]
        outcome = f"{row['outcome']}: `{first_error(row['reason'])}`" if row["reason"] else row["outcome"]
        rows.append(["" if name == package else name, f"`{extension}`", f"`{row['trial']}`", outcome])
        package = name
    right = sum(row["outcome"] == study.RIGHT for row in record["rows"])
    table = markdown_table(["package", "extension", "trial", "outcome"], rows, left=4)
    versions = f"torch {record['versions']['torch']}, g++ {record['versions']['g++']}, {record['date'][:10]}"
    return f"{table}\n\n{right} of {len(rows)} are right. {versions}.{stale_note(record)}"


def public_programs_table() -> str:
    """How many programs of each repository succeed and are right; below it the others, with the reasons."""
    recorded = programs_study.read_record()
    rows, others = [], []
    for repository, address in programs.REPOSITORIES.items():
        if repository not in recorded:
            continue
        record = recorded[repository]
        own, mark = record["rows"], r"\*" if stale_note(record) else ""
        counts = {outcome: sum(row["outcome"] == outcome for row in own) for outcome in programs_study.OUTCOMES}
        smaller = sum(row["smaller"] for row in own)
        right, succeeding = counts.pop(programs_study.RIGHT), sum(row["succeeds"] for row in own)
        other = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        numbers = map(str, (len(own), smaller, succeeding, right))
        date = f"{record['date'][:10]}, g++ {record['versions']['g++']}{mark}"
        rows.append([f"[{repository}]({address})", *numbers, other or "–", date])
        others += [describe_program(row) for row in own if row["outcome"] != programs_study.RIGHT]
    head = ["repository", "programs", "with smaller sizes", "succeed", "right", "others", "recorded"]
    notes = [r"\* The emulator has changed since."] if any(row[-1].endswith("*") for row in rows) else []
    return "\n\n".join((markdown_table(head, rows, left=1), *notes, "\n".join(others)))


def describe_program(row: dict) -> str:
    """A line of the list of programs that are not right."""
    quote = "``" if "`" in row["reason"] else "`"  # Markdown's, for code with backticks
    reason = f": {quote}{first_error(row['reason'])}{quote}" if row["reason"] else ""
    return f"- `{row['name']}` ({row['outcome']}){reason}"


def first_error(reason: str) -> str:
    """The first error of g++ or of the emulator, without what follows it."""
    return reason.partition("error: ")[2].partition(" (races)")[0] or reason
