"""The record of wheels as a table."""

from __future__ import annotations

from . import STUDY
from .recorder import hash_wheel_sources, minor_version, outcome_cell


def wheels_table() -> str:
    """What was recorded: a line for each wheel, a column for each environment, and below what went wrong."""
    if not (record := STUDY.read_record()):
        return "Not tried yet: `make wheels`."
    versions = list(dict.fromkeys((row["python"], row["torch"]) for row in record["rows"]))
    lines, notes = [], {}
    for wheel in record["wheels"]:
        kind = wheel["kind"]
        stale = " (stale: sources changed since)" if record["sources"][kind] != hash_wheel_sources(kind) else ""
        line = [kind + stale, f"`{wheel['file']}`", f"{wheel['bytes'] / 1000:.0f}"]
        line += [str(wheel[of]) for of in ("C++", "C", "Python")]
        lines.append(line + [outcome_cell(row["checks"], notes) for row in record["rows"] if row["kind"] == kind])
    heads = [f"Python {minor_version(python)}<br>torch {minor_version(torch)}" for python, torch in versions]
    head = ["bound through", "file", "kB", "of torch's<br>C++", "of its<br>C shims", "of<br>Python", *heads]
    rows = [head, ["---", "---", *["---:"] * 4, *["---"] * len(heads)], *lines]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    built = record["built_with"]
    return (
        f"Built for the CPU with Python {minor_version(built['python'])} and torch {minor_version(built['torch'])}, "
        f"{record['date'][:10]}. The table counts the functions that each wheel imports from torch and from Python, "
        f"and shows the result in environments without a compiler.\n\n{table}\n\n"
        + "\n".join(f"{mark}. {text}" for text, mark in notes.items())
    )
