"""The parts of a file that the learner writes: regions of a stage's sources, and parts between markers."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import UserError
from ..exercise import Exercise, Region

COMMENT_SIGNS = {".py": "#", ".sh": "#", ".toml": "#", ".txt": "#", ".ini": "#"}  # all others: //
BEGIN = re.compile(r"^\s*(?://|#)\s*BEGIN SOLUTION(?: (?P<name>\w+))?(?:: (?P<todo>.*))?\s*$")
MARK = re.compile(r"^\s*(?://|#)\s*(?P<what>BEGIN STARTER|END STARTER|END SOLUTION)\s*$")


class Part:
    """A part that the learner writes, as solution and as starter; `indented` fits other text to its indentation."""

    def __init__(self, name: str, solution: list[str], starter: list[str]) -> None:
        self.name, self.solution, self.starter = name, solution, starter

    def indented(self, text: str) -> list[str]:
        """Another text with the indentation of the solution."""
        return _indent(text, _indentation(self.solution))


def replace_regions(
    exercise: Exercise, file: str, files: Mapping[str, str], choose: Callable[[Part], list[str]]
) -> str:
    """A file of the stage with each region replaced, starting with the last, so that line numbers stay valid."""
    if file not in files:
        raise UserError(f"exercise {exercise.id}: stage {exercise.stage} has no {file}")
    lines = files[file].splitlines()
    found = sorted(
        ((*_find_region(exercise, region, lines), region) for region in exercise.regions if region.file == file),
        key=lambda one: -one[0],
    )
    for (begin, _, region), (_, end, other) in itertools.pairwise(found):
        if end > begin:
            raise UserError(f"exercise {exercise.id}: regions {other.name} and {region.name} overlap in {file}")
    for begin, end, region in found:
        old = lines[begin:end]
        todo = _todo_comment(region.todo, file)
        part = Part(region.name, old, _indent("\n".join([*todo, region.placeholder]), _indentation(old)))
        lines[begin:end] = choose(part)
    return "\n".join(lines) + "\n"


def _find_region(exercise: Exercise, region: Region, lines: list[str]) -> tuple[int, int]:
    """The first line of a region and the one behind its last."""

    def at(text: str, start: int, unique: bool) -> int:
        hits = [k for k in range(start, len(lines)) if _matches(text, lines[k])]
        if not hits or (unique and len(hits) > 1):
            what = "is not" if not hits else f"is {len(hits)} times"
            raise UserError(f"exercise {exercise.id}: region {region.name}: {text!r} {what} in {region.file}")
        return hits[0]

    start = at(region.after, 0, unique=True) if region.after else 0
    begin = at(region.first, start, unique=not region.after)
    return begin, at(region.last, begin, unique=False) + 1


def _matches(text: str, line: str) -> bool:
    """Whether a line contains a text, or begins with it where that is written `^text`."""
    return line.startswith(text[1:]) if text.startswith("^") else text in line


def replace_marked_parts(name: str, text: str, choose: Callable[[Part], list[str]]) -> str:
    """A file with each part between markers replaced; without markers, the file itself."""
    lines, solution, starter, state, opened = [], [], [], "", None
    for number, line in enumerate(text.splitlines(), 1):
        begin, mark = BEGIN.match(line), MARK.match(line)
        what = "BEGIN SOLUTION" if begin else mark["what"] if mark else ""
        if what and state != {"BEGIN STARTER": "solution", "END STARTER": "starter", "END SOLUTION": "solution"}.get(
            what, ""
        ):
            raise UserError(f"{name}:{number}: {what} does not belong here")
        if begin:
            opened, solution, starter, state = begin, [], [], "solution"
        elif what == "BEGIN STARTER":
            state = "starter"
        elif what == "END STARTER":
            state = "solution"
        elif what == "END SOLUTION":
            if opened["todo"] or not starter:
                starter = [
                    *_indent("\n".join(_todo_comment(opened["todo"] or "", name)), _indentation([opened[0]])),
                    *starter,
                ]
            lines += choose(Part(opened["name"] or "", solution, starter))
            state = ""
        elif state == "starter":
            starter.append(re.sub(r"^(\s*)(?://|#) ?", r"\1", line))
        elif state == "solution":
            solution.append(line)
        else:
            lines.append(line)
    if state:
        raise UserError(f"{name}: BEGIN SOLUTION without END SOLUTION")
    return "\n".join(lines) + "\n" if text.endswith("\n") else "\n".join(lines)


def _todo_comment(text: str, file: str) -> list[str]:
    """A TODO as a comment in the language of a file."""
    sign = COMMENT_SIGNS.get(Path(file).suffix, "//")
    first, *others = text.splitlines() or [""]
    return [f"{sign} TODO: {first}".removesuffix(": "), *(f"{sign} {line}".rstrip() for line in others)]


def _indentation(lines: list[str]) -> str:
    line = next((line for line in lines if line.strip()), "")
    return line[: len(line) - len(line.lstrip())]


def _indent(text: str, indentation: str) -> list[str]:
    """The lines of a text, indented as a whole to where it is to stand."""
    return textwrap.indent(textwrap.dedent(text).strip("\n"), indentation).splitlines()
