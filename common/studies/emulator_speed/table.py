"""The record of the emulator's speed as a table."""

from __future__ import annotations

from ...pages.markdown import markdown_table
from . import STUDY
from .recorder import MODES, hash_source


def speed_table() -> str:
    """The time of each operation, by mode; below it the machine and the date."""
    if not (record := STUDY.read_record()):
        return "Not measured yet: `make emulator-speed`."
    rows = [
        [row["name"], *(time_text(row["seconds"].get(mode), row["operations"]) for mode in MODES)]
        for row in record["rows"]
    ]
    table = markdown_table(["operation", *MODES], rows)
    stale = "" if record["sources"] == hash_source() else " The program has changed since."
    machine = f"{record['machine']['cores']} cores, g++ {record['versions']['g++']}, {record['date'][:10]}."
    return f"{table}\n\n{machine}{stale}"


def time_text(seconds: float | None, operations: float) -> str:
    """The time of one operation: "12.3 ns", or "15.2 s" for a whole program."""
    if seconds is None:
        return "not measured"
    return f"{seconds:.1f} s" if operations == 1 else f"{seconds / operations * 1e9:.1f} ns"
