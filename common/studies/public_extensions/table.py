"""The record of public extensions as a table."""

from __future__ import annotations

from ...emulator import fingerprint
from ...pages.markdown import markdown_table
from ...results.formatting import first_error
from . import STUDY
from .recorder import RIGHT


def public_extensions_table() -> str:
    """The outcome of each trial of a public extension; below it the versions and the date."""
    if not (record := STUDY.read_record()):
        return "Not recorded yet: `make public-extensions`."
    rows, package = [], ""
    for row in record["rows"]:
        name = f"{row['package']} {row['version']}"
        extension = row["extension"].rpartition(".")[2]
        outcome = f"{row['outcome']}: `{first_error(row['reason'])}`" if row["reason"] else row["outcome"]
        rows.append(["" if name == package else name, f"`{extension}`", f"`{row['trial']}`", outcome])
        package = name
    right = sum(row["outcome"] == RIGHT for row in record["rows"])
    table = markdown_table(["package", "extension", "trial", "outcome"], rows, left=4)
    stale = "" if record["sources"] == fingerprint().hex() else " The emulator has changed since."
    versions = f"torch {record['versions']['torch']}, g++ {record['versions']['g++']}, {record['date'][:10]}"
    return f"{table}\n\n{right} of {len(rows)} are right. {versions}.{stale}"
