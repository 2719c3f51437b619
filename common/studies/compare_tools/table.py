"""The record of the tool comparison as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...pages.markdown import markdown_table as table
from . import STUDY, mistakes
from .recorder import CASE_SECONDS, SANITIZER_OPTIONS, TOOL_OUTCOMES, TOOLS, has_changed


def tool_comparison_table() -> str:
    """Program by program, how many of its mistakes each tool reports, and how many right cases."""
    record = STUDY.read_record()
    rows = record["rows"] if record else []
    header = ["mistakes", "cases", *TOOLS[:-1], "any of the four", "the program fails by itself"]
    lines = [program_line(program, rows) for program in mistakes.mistake_programs()]
    lines.append(false_alarms_line(rows))
    if record is None:
        where = "Not measured yet: `make compare-tools` on a machine with a GPU and compute-sanitizer."
        return f"{where}\n\n{table(header, lines)}"
    where = (
        f"{record['machine']['gpu']}, driver {record['machine']['driver']}, nvcc {record['versions']['nvcc']}, "
        f"compute-sanitizer {record['versions']['compute-sanitizer']}, {record['date'][:10]}. A mistake "
        "counts when the tool reports it at a line that causes it. The brackets count reports at other lines, and "
        f"programs that did not end within {CASE_SECONDS} s."
    )
    stale = [program_title(program) for program in mistakes.mistake_programs() if has_changed(program, record)]
    notes = [f"Stale, because the programs have changed since: {', '.join(stale)}."] if stale else []
    missed = list_missed(rows)
    notes.append(
        f"The emulator does not report these mistakes at the right line: {', '.join(missed)}."
        if missed
        else "The emulator reports every mistake that was measured at the right line."
    )
    return "\n\n".join([where, table(header, lines), *notes])


def program_title(program: Path) -> str:
    """What a program's mistakes are about: the beginning of its first comment."""
    return program.read_text().partition("\n")[0].removeprefix("// ").partition(":")[0]


def program_line(program: Path, rows: Sequence[dict]) -> list[str]:
    """The line of the table for a program."""
    wrong = [case.name for case in mistakes.read_mistakes(program) if case.kind != "right"]
    own = [row for row in rows if row["program"] == program.stem and row["case"] in wrong]
    cells = {tool: count_cell(tool, [row for row in own if row["tool"] == tool]) for tool in TOOLS}
    by_tools = {row["case"] for row in own if row["tool"] in SANITIZER_OPTIONS and row["outcome"] == "right line"}
    together = str(len(by_tools)) if own else "not measured"
    return [program_title(program), str(len(wrong)), *(cells[f] for f in TOOLS[:-1]), together, cells[TOOLS[-1]]]


def count_cell(tool: str, own: Sequence[dict]) -> str:
    """How many were found at the right line, and in brackets what became of others that were not silent."""
    count = {outcome: sum(row["outcome"] == outcome for row in own) for outcome in TOOL_OUTCOMES}
    if not own or count["not run"] == len(own):
        return "not measured"
    found = "elsewhere" if tool == "no tool" else "right line"  # alone, a program names no line
    others = [f"{count[name]} {name}" for name in ("elsewhere", "hang", "not run") if count[name] and name != found]
    return f"{count[found]} ({', '.join(others)})" if others else str(count[found])


def false_alarms_line(rows: Sequence[dict]) -> list[str]:
    """The line for the cases without a mistake: every report there is a false alarm."""
    right = [
        (p.stem, case.name)
        for p in mistakes.mistake_programs()
        for case in mistakes.read_mistakes(p)
        if case.kind == "right"
    ]
    own = [row for row in rows if (row["program"], row["case"]) in right]
    alarms = [row for row in own if row["outcome"] != "silent"]
    cells = {tool: str(sum(row["tool"] == tool for row in alarms)) if own else "not measured" for tool in TOOLS}
    together = str(len({(row["program"], row["case"]) for row in alarms if row["tool"] in SANITIZER_OPTIONS}))
    shown = together if own else "not measured"
    return ["no mistake: false alarms", str(len(right)), *(cells[f] for f in TOOLS[:-1]), shown, cells[TOOLS[-1]]]


def list_missed(rows: Sequence[dict]) -> list[str]:
    """The compared mistakes that the emulator did not report at a marked line."""
    missed = {(r["program"], r["case"]) for r in rows if r["tool"] == "emulator" and r["outcome"] != "right line"}
    wrong = [
        (p.stem, case.name)
        for p in mistakes.mistake_programs()
        for case in mistakes.read_mistakes(p)
        if case.kind != "right"
    ]
    return [f"`{' '.join(names)}`" for names in wrong if names in missed]
