"""The programs of common/emulator/programs/mistakes: their cases, and the mistakes that are marked in them.

A case is a function `CASE(wrong_...)`, `CASE(warned_...)` or `CASE(right_...)`. Its lines reach from the end of
the previous case to its own end; the comments `// BUG check: array` and `// WARNING check: array` mark mistakes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...paths import ROOT

PROGRAMS = ROOT / "common" / "emulator" / "programs" / "mistakes"
MARK_COMMENT = re.compile(r"// (?:BUG|WARNING) (?P<check>\w+)(?:: (?P<array>\w+))?$")
CASE_LINE = re.compile(r"^CASE\((?P<name>\w+)\)")
HEADLINE = re.compile(
    r"^  (?P<kind>error|warning): (?P<what>.*?)(?:, in (?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?)? \((?P<check>\w+)\)$"
)


@dataclass(frozen=True)
class MistakeMark:
    """A line that must be reported: its number, by which check, and the array (or kernel) that must be named."""

    line: int
    check: str
    array: str | None


@dataclass(frozen=True)
class Mistake:
    """A case of a program."""

    program: Path
    name: str
    marks: tuple[MistakeMark, ...]

    @property
    def kind(self) -> str:
        """`wrong`: a mistake; `warned`: allowed by devices, worth a warning; `right`: nothing may be reported."""
        return self.name.partition("_")[0]


@dataclass(frozen=True)
class ReportEntry:
    """The emulator's report of one cause; `line` is a line of the program, None if the cause is elsewhere."""

    is_warning: bool
    check: str
    line: int | None
    text: str

    @cached_property
    def lines(self) -> set[int]:
        """Every line that the finding names."""
        return {int(number) for number in re.findall(r"\.cu:(\d+)", self.text)}


def mistake_programs() -> list[Path]:
    """The programs, in the order of their names."""
    return sorted(PROGRAMS.glob("*.cu"))


def read_mistakes(program: Path) -> list[Mistake]:
    """The cases of a program, in the order of its text."""
    found: list[Mistake] = []
    marks: list[MistakeMark] = []
    name = None
    for number, line in enumerate(program.read_text().splitlines(), 1):
        if mark := MARK_COMMENT.search(line):
            marks.append(MistakeMark(number, mark["check"], mark["array"]))
        if case := CASE_LINE.match(line):
            name = case["name"]
        if name and (line.startswith("}") or (case and re.search(r"\}( *//.*)?$", line))):
            found.append(Mistake(program, name, tuple(marks)))
            marks, name = [], None
    return found


def parse_report(report: str, program: Path) -> list[ReportEntry]:
    """The findings of an emulator report about a program, in order."""
    found: list[tuple[re.Match, list[str]]] = []
    for line in report.splitlines():
        if headline := HEADLINE.match(line):
            found.append((headline, [line]))
        elif found and line.startswith("     "):
            found[-1][1].append(line)
    return [
        ReportEntry(
            is_warning=headline["kind"] == "warning",
            check=headline["check"],
            line=int(headline["line"]) if Path(headline["file"] or "").name == program.name else None,
            text="\n".join(lines),
        )
        for headline, lines in found
    ]


def matches_mistake(finding: ReportEntry, case: Mistake) -> bool:
    """Whether a finding matches a case's mistake: a marked line, the same check, and the name of the array."""
    return any(
        (finding.line, finding.check) == (mark.line, mark.check)
        and (mark.array is None or re.search(rf"\b{mark.array}\b", finding.text))
        for mark in case.marks
    )
