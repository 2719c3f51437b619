"""The record of public programs as a table, and a list of those that are not right."""

from __future__ import annotations

from ...emulator import fingerprint
from ...pages.markdown import markdown_table
from ...results.formatting import first_error
from .programs import REPOSITORIES
from .recorder import OUTCOMES, RIGHT, read_record


def public_programs_table() -> str:
    """How many programs of each repository succeed and are right; below it the others, with the reasons."""
    recorded = read_record()
    rows, others = [], []
    for repository, address in REPOSITORIES.items():
        if repository not in recorded:
            continue
        record = recorded[repository]
        own, mark = record["rows"], "" if record["sources"] == fingerprint().hex() else r"\*"
        counts = {outcome: sum(row["outcome"] == outcome for row in own) for outcome in OUTCOMES}
        smaller = sum(row["smaller"] for row in own)
        right, succeeding = counts.pop(RIGHT), sum(row["succeeds"] for row in own)
        other = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        numbers = map(str, (len(own), smaller, succeeding, right))
        date = f"{record['date'][:10]}, g++ {record['versions']['g++']}{mark}"
        rows.append([f"[{repository}]({address})", *numbers, other or "–", date])
        others += [describe_program(row) for row in own if row["outcome"] != RIGHT]
    head = ["repository", "programs", "with smaller sizes", "succeed", "right", "others", "recorded"]
    notes = [r"\* The emulator has changed since."] if any(row[-1].endswith("*") for row in rows) else []
    return "\n\n".join((markdown_table(head, rows, left=1), *notes, "\n".join(others)))


def describe_program(row: dict) -> str:
    """A line of the list of programs that are not right."""
    quote = "``" if "`" in row["reason"] else "`"  # Markdown's, for code with backticks
    reason = f": {quote}{first_error(row['reason'])}{quote}" if row["reason"] else ""
    return f"- `{row['name']}` ({row['outcome']}){reason}"
