"""Reads the syllabus tags of notebooks, pages, tests and exercises."""

from __future__ import annotations

import ast
import configparser
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import UserError


class Tag(NamedTuple):
    """That a place claims to show something: `claim` such as "1.2a" (or "1.2", for exercises)."""

    claim: str
    title: str  # what the link is called
    link: str  # relative to the root
    where: str  # file:line, for messages
    counts: bool = True  # False for a section without code


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
            raise UserError(f"{where}: the line above the tag {found[1]} is not a heading (## ...)")
        title = heading.removeprefix("## ")
        section = itertools.takewhile(lambda row: not row.startswith("## "), lines[number:])
        counts = any(row.startswith("```sh") for row in section)
        link = f"{place}#{heading_anchor(title)}"
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


def heading_anchor(heading: str) -> str:
    """GitHub's name for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
