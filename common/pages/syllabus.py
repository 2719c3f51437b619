"""What the workbook teaches, and where: docs/claims.txt compared with the tags in notebooks, tests and exercises.

A tag counts for a notebook section only if the section has a code cell, and for a section of docs/build.md only if it
has commands, which tests/docs/test_build_reference.py runs. docs/syllabus.md is generated from this.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError
from ..paths import ROOT
from ..stages import STAGES
from .syllabus_tags import Tag, heading_anchor, tags_in_manifest, tags_in_notebook, tags_in_page, tags_in_tests

CLAIMS = ROOT / "docs" / "claims.txt"


@dataclass(frozen=True)
class Claim:
    """One statement that the workbook teaches. `doubted`: widely read tutorials get it wrong or are outdated."""

    letter: str
    text: str
    doubted: bool


@dataclass(frozen=True)
class Line:
    """One line of the syllabus: `number` such as "2.12", its title and its claims."""

    number: str
    title: str
    claims: tuple[Claim, ...]

    @property
    def stage(self) -> int:
        return int(self.number.split(".")[0])


def read_claims(path: Path = CLAIMS) -> list[Line]:
    """The list of claims. Raises `UserError`, with file and line, for a line that is neither title nor claim."""
    lines: list[Line] = []
    for number, row in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not row.strip() or row.startswith("#"):
            continue
        if title := re.fullmatch(r"(\d\.\d+) (\S.*)", row):
            lines.append(Line(title[1], title[2], ()))
        elif (claim := re.fullmatch(r"  ([a-z])(!?) +(\S.*)", row)) and lines:
            last = lines.pop()
            claims = (*last.claims, Claim(claim[1], claim[3], bool(claim[2])))
            lines.append(Line(last.number, last.title, claims))
        else:
            raise UserError(f"{path.name}:{number}: neither a title ('1.2 ...') nor a claim ('  a  ...'): {row}")
    return lines


Reader = Callable[[Path, Path], list[Tag]]  # of a file's tags, given the file and the root


@dataclass(frozen=True)
class Coverage:
    """Where each claim is taught and tested, and where each number is practised."""

    lines: list[Line]
    taught: dict[str, list[Tag]]
    tested: dict[str, list[Tag]]
    practised: dict[str, list[Tag]]


def coverage(root: Path = ROOT) -> Coverage:
    """The tags under `root` by claim. Raises `UserError`, with file and line, for an unknown tag."""
    lines = read_claims(root / "docs" / "claims.txt")
    claims = [line.number + claim.letter for line in lines for claim in line.claims]

    def collect(known: list[str], *sources: tuple[Reader, str]) -> dict[str, list[Tag]]:
        found: dict[str, list[Tag]] = {name: [] for name in known}
        read_all = (read(path, root) for read, pattern in sources for path in sorted(root.glob(pattern)))
        for tag in itertools.chain.from_iterable(read_all):
            if tag.claim not in found:
                raise UserError(f"{tag.where}: {tag.claim!r} is not in docs/claims.txt")
            if tag.counts:
                found[tag.claim].append(tag)
        return found

    return Coverage(
        lines,
        collect(claims, (tags_in_notebook, "notebooks/*.py"), (tags_in_page, "docs/build.md")),
        collect(claims, (tags_in_tests, "tests/**/test_*.py")),
        collect([line.number for line in lines], (tags_in_manifest, "stages/*/exercises/*/exercise.ini")),
    )


def syllabus_table(root: Path = ROOT) -> str:
    """The counts, and a table per stage, in Markdown for docs/syllabus.md."""
    found = coverage(root)
    count = ["| stage | taught | tested | practised |", "|---|---|---|---|"]
    tables = []
    for stage in STAGES:
        lines = [line for line in found.lines if line.stage == stage.number]
        if not lines:
            continue
        heading = f"Stage {stage.number}: {stage.title}"
        claims = [line.number + claim.letter for line in lines for claim in line.claims]
        taught, tested = (sum(bool(where[c]) for c in claims) for where in (found.taught, found.tested))
        practised = sum(bool(found.practised[line.number]) for line in lines)
        count.append(
            f"| [{heading}](#{heading_anchor(heading)}) | {taught} of {len(claims)} | {tested} of {len(claims)} "
            f"| {practised} of {len(lines)} |"
        )
        rows = [row for line in lines for row in _rows(line, found)]
        tables.append("\n".join([f"## {heading}", "", "| | claim | taught | tested |", "|---|---|---|---|", *rows]))
    return "\n\n".join(["\n".join(count), *tables])


def line_anchor(number: str) -> str:
    """The name, within docs/syllabus.md, of the line with that number."""
    return f"line-{number}"


def _rows(line: Line, found: Coverage) -> Iterator[str]:
    """The rows of one number: its title, with the exercises that practise it, then its claims."""
    practised = _links(found.practised[line.number])
    anchor = f'<a id="{line_anchor(line.number)}"></a>'
    yield f"| {anchor}**{line.number}** | **{line.title}** (practised in: {practised}) | | |"
    for claim in line.claims:
        name = line.number + claim.letter
        taught, tested = (_links(where[name]) for where in (found.taught, found.tested))
        yield f"| {name}{' ⚠' if claim.doubted else ''} | {claim.text} | {taught} | {tested} |"


def _links(tags: list[Tag]) -> str:
    """One link per place, however often it carries the tag; a dash where there is none."""
    places = dict.fromkeys((tag.title.replace("|", "\\|"), tag.link) for tag in tags)
    return "<br>".join(f"[{title}](../{link})" for title, link in places) or "–"
