"""What the workbook teaches, and where: docs/claims.txt held against the tags in notebooks, tests and exercises.

A tag counts for a notebook section only if the section has a code cell, and for a section of docs/build.md only if it
has commands, which tests/test_build_reference.py runs. docs/syllabus.md is generated from this.
"""

from __future__ import annotations

import ast
import configparser
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import UserError
from .stages import ROOT, STAGES

CLAIMS = ROOT / "docs" / "claims.txt"


@dataclass(frozen=True)
class Claim:
    """One thing that a learner knows at the end. `doubted`: widely read tutorials have it wrong or out of date."""

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


class Tag(NamedTuple):
    """That a place claims to show something: `claim` such as "1.2a" (or "1.2", for exercises)."""

    claim: str
    title: str  # what the link is called
    link: str  # relative to the root
    where: str  # file:line, for messages
    counts: bool = True  # False for a section without code


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


def tags_in_notebook(path: Path, root: Path) -> list[Tag]:
    """The tags of a percent-format notebook, each given as `# %% [markdown] syllabus="1.1a 1.1b"`.

    The markdown cell that carries the tag has a heading; its section reaches to the next heading of the same or a
    higher level, and counts only if there is a code cell in it. Raises `UserError` for a tag without a heading.
    """
    name, place = path.stem, str(path.relative_to(root).with_suffix(".ipynb"))
    cells = list(_cells(path))
    tags = []
    for index, cell in enumerate(cells):
        if not cell.claims:
            continue
        where = f"{path.relative_to(root)}:{cell.line}"
        if cell.level == 0:
            raise UserError(f"{where}: the cell tagged {' '.join(cell.claims)} has no heading")
        section = cells[index + 1 :]
        end = next((k for k, other in enumerate(section) if 0 < other.level <= cell.level), len(section))
        counts = any(other.is_code for other in section[:end])
        tags += [Tag(claim, f"{name}: {cell.heading}", place, where, counts) for claim in cell.claims]
    return tags


class _Cell(NamedTuple):
    """One cell of a notebook; `level` is that of its first heading, 0 without one."""

    line: int
    is_code: bool
    level: int
    heading: str
    claims: list[str]


def _cells(path: Path) -> Iterator[_Cell]:
    """The cells of a percent-format notebook; a code cell needs a line that is more than a comment."""
    rows = path.read_text(encoding="utf-8").splitlines()
    starts = [k for k, row in enumerate(rows) if row.startswith("# %%")]
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        header, body = rows[start], [row for row in rows[start + 1 : end] if row.strip()]
        tag = re.search(r'\bsyllabus="([^"]*)"', header)
        claims = tag[1].split() if tag else []
        if header.startswith("# %% [markdown]"):
            headings = (re.fullmatch(r"# (#+) +(.*)", row) for row in body)
            heading = next(filter(None, headings), None)
            yield _Cell(start + 1, False, len(heading[1]) if heading else 0, heading[2] if heading else "", claims)
        else:
            is_code = "[raw]" not in header and any(not row.lstrip().startswith("#") for row in body)
            yield _Cell(start + 1, is_code, 0, "", claims)


def tags_in_page(path: Path, root: Path) -> list[Tag]:
    """The tags of a Markdown page, each given as `<!-- syllabus: 4.4a 4.4b -->` in the line below a `##` heading.

    A section counts only if it has a block of commands, fenced as sh. Raises `UserError` for a tag without a heading.
    """
    place = path.relative_to(root)
    lines = path.read_text(encoding="utf-8").splitlines()
    tags = []
    for number, line in enumerate(lines):
        if not (found := re.fullmatch(r"<!-- syllabus: ([^>]*) -->", line)):
            continue
        where, heading = f"{place}:{number + 1}", lines[number - 1]
        if not (number and heading.startswith("## ")):
            raise UserError(f"{where}: the line above the tag {found[1]} is no heading (## ...)")
        title = heading.removeprefix("## ")
        section = itertools.takewhile(lambda row: not row.startswith("## "), lines[number:])
        counts = any(row.startswith("```sh") for row in section)
        link = f"{place}#{_anchor(title)}"
        tags += [Tag(claim, f"{path.stem}: {title}", link, where, counts) for claim in found[1].split()]
    return tags


def tags_in_tests(path: Path, root: Path) -> list[Tag]:
    """The tags of a test file: `@pytest.mark.syllabus("1.2a", ...)` on functions and classes, read, not run.

    Raises `UserError` for a tag that is not a plain string, because it could not be read.
    """
    place = str(path.relative_to(root))
    tags = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for mark in node.decorator_list:
            if not (isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.syllabus"):
                continue
            where = f"{place}:{mark.lineno}"
            for claim in mark.args:
                if not (isinstance(claim, ast.Constant) and isinstance(claim.value, str)):
                    raise UserError(f"{where}: a syllabus tag must be a plain string, not {ast.unparse(claim)}")
                tags.append(Tag(claim.value, node.name, place, where))
    return tags


def tags_in_manifest(path: Path, root: Path) -> list[Tag]:
    """The numbers that an exercise practises: `syllabus` of its exercise.ini."""
    manifest = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=(";",))
    manifest.read_string(path.read_text(encoding="utf-8"), str(path))
    head, place = manifest["exercise"], path.relative_to(root)
    title = head.get("title", path.parent.name)
    return [Tag(number, title, str(place.parent), f"{place}:1") for number in head.get("syllabus", "").split()]


Reader = Callable[[Path, Path], list[Tag]]  # of a file's tags, given the file and the root


@dataclass(frozen=True)
class Coverage:
    """Where each claim is taught and tested, and where each number is practised."""

    lines: list[Line]
    taught: dict[str, list[Tag]]
    tested: dict[str, list[Tag]]
    practised: dict[str, list[Tag]]


def coverage(root: Path = ROOT) -> Coverage:
    """Everything under `root` held against its list. Raises `UserError`, with file and line, for an unknown tag."""
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


def markdown(root: Path = ROOT) -> str:
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
            f"| [{heading}](#{_anchor(heading)}) | {taught} of {len(claims)} | {tested} of {len(claims)} "
            f"| {practised} of {len(lines)} |"
        )
        rows = [row for line in lines for row in _rows(line, found)]
        tables.append("\n".join([f"## {heading}", "", "| | claim | taught | tested |", "|---|---|---|---|", *rows]))
    return "\n\n".join(["\n".join(count), *tables])


def _rows(line: Line, found: Coverage) -> Iterator[str]:
    """The rows of one number: its title, with the exercises that practise it, then its claims."""
    practised = _links(found.practised[line.number])
    yield f"| **{line.number}** | **{line.title}** (practised in: {practised}) | | |"
    for claim in line.claims:
        name = line.number + claim.letter
        taught, tested = (_links(where[name]) for where in (found.taught, found.tested))
        yield f"| {name}{' ⚠' if claim.doubted else ''} | {claim.text} | {taught} | {tested} |"


def _links(tags: list[Tag]) -> str:
    """One link per place, however often it carries the tag; a dash where there is none."""
    places = dict.fromkeys((tag.title.replace("|", "\\|"), tag.link) for tag in tags)
    return "<br>".join(f"[{title}](../{link})" for title, link in places) or "–"


def _anchor(heading: str) -> str:
    """GitHub's name for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
