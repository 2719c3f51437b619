"""The files of an exercise, made from one source: the starter, the solution, and each wrong answer.

A variant is a dictionary from path to text: all that a learner's folder holds.
"""

from __future__ import annotations

import configparser
import itertools
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

from ..errors import UserError
from .diffs import patched
from .exercise import Exercise, Region

Files = dict[str, str]
SAYS = "says.txt"
DIFF = ".diff"
ANSWERS = "answers.ini"
COMMENTS = {".py": "#", ".sh": "#", ".toml": "#", ".txt": "#", ".ini": "#"}  # all others: //
COMMENT = re.compile(r"\s*(?://|#) (.*)")
BEGIN = re.compile(r"^\s*(?://|#)\s*BEGIN SOLUTION(?: (?P<name>\w+))?(?:: (?P<todo>.*))?\s*$")
MARK = re.compile(r"^\s*(?://|#)\s*(?P<what>BEGIN STARTER|END STARTER|END SOLUTION)\s*$")


def starter(exercise: Exercise) -> Files:
    """What the learner begins with."""
    files = _base(exercise, lambda part: part.starter)
    for name, text in _texts(exercise.folder / "starter").items():
        _replace(exercise, files, name, text, f"starter/{name}")
    if exercise.kind == "predict":
        files[ANSWERS] = _questions(exercise)
    return files


def is_starter(exercise: Exercise, folder: Path) -> bool:
    """Whether a folder holds the starter and no change."""
    try:
        return all((folder / name).read_text(encoding="utf-8") == text for name, text in starter(exercise).items())
    except (OSError, UnicodeDecodeError):
        return False


def solution(exercise: Exercise) -> Files:
    """What passes."""
    files = _base(exercise, lambda part: part.solution)
    if exercise.kind == "predict":
        files[ANSWERS] = _questions(exercise, {question.name: question.answer for question in exercise.questions})
    return files


def without_answers(exercise: Exercise) -> Files:
    """The solution with nothing at all where the learner writes."""
    return _base(exercise, lambda part: [])


def wrong(exercise: Exercise) -> dict[str, Files]:
    """Each wrong answer by its name. Raises `UserError` for one that replaces nothing that there is."""
    folders = sorted(path for path in (exercise.folder / "wrong").glob("*") if path.is_dir())
    return {folder.name: _wrong(exercise, folder) for folder in folders}


def says(exercise: Exercise, name: str) -> list[str]:
    """What the message to a wrong answer must contain."""
    lines = (exercise.folder / "wrong" / name / SAYS).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip()]


def todos(files: Files) -> list[tuple[str, int, str]]:
    """Where a starter wants something: file, line and what it says there, which may go on in comments below."""
    found = []
    for name, text in sorted(files.items()):
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if not re.match(r"\s*(?://|#) TODO\b", line):
                continue
            rest = [COMMENT.match(other) for other in lines[number - 1 :]]
            words = [match[1] for match in itertools.takewhile(bool, rest)]
            found.append((name, number, " ".join(words)))
    return found


class _Part:
    """A part that the learner writes, in its two forms, and the indentation of its place."""

    def __init__(self, name: str, solution: list[str], starter: list[str]) -> None:
        self.name, self.solution, self.starter = name, solution, starter

    def indented(self, text: str) -> list[str]:
        """A text of its own, moved to where the solution stands."""
        return _moved(text, _indentation(self.solution))


def _base(exercise: Exercise, choose: Callable[[_Part], list[str]]) -> Files:
    """All files, with each part in the form that is chosen."""
    if exercise.kind == "write":
        files = _stage_files(exercise)
        for file in dict.fromkeys(region.file for region in exercise.regions):
            files[file] = _with_regions(exercise, file, files, choose)
        return files
    return {name: _with_parts(name, text, choose) for name, text in _texts(exercise.folder / "files").items()}


def _stage_files(exercise: Exercise) -> Files:
    """The stage as it is handed out: its package without the README."""
    folder = exercise.source.folder
    paths = [*folder.glob("*.py"), *(path for path in (folder / "csrc").rglob("*") if path.is_file())]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in sorted(paths)}


def _with_regions(exercise: Exercise, file: str, files: Files, choose: Callable[[_Part], list[str]]) -> str:
    """A file of the stage with each region replaced; the last one first, so that line numbers stay."""
    if file not in files:
        raise UserError(f"exercise {exercise.id}: stage {exercise.stage} has no {file}")
    lines = files[file].splitlines()
    found = sorted(
        ((*_span(exercise, region, lines), region) for region in exercise.regions if region.file == file),
        key=lambda one: -one[0],
    )
    for (begin, _, region), (_, end, other) in itertools.pairwise(found):
        if end > begin:
            raise UserError(f"exercise {exercise.id}: regions {other.name} and {region.name} overlap in {file}")
    for begin, end, region in found:
        old = lines[begin:end]
        todo = _comment(region.todo, file)
        part = _Part(region.name, old, _moved("\n".join([*todo, region.placeholder]), _indentation(old)))
        lines[begin:end] = choose(part)
    return "\n".join(lines) + "\n"


def _span(exercise: Exercise, region: Region, lines: list[str]) -> tuple[int, int]:
    """The first line of a region and the one behind its last."""

    def at(text: str, start: int, unique: bool) -> int:
        hits = [k for k in range(start, len(lines)) if _is_at(text, lines[k])]
        if not hits or (unique and len(hits) > 1):
            what = "is not" if not hits else f"is {len(hits)} times"
            raise UserError(f"exercise {exercise.id}: region {region.name}: {text!r} {what} in {region.file}")
        return hits[0]

    start = at(region.after, 0, unique=True) if region.after else 0
    begin = at(region.first, start, unique=not region.after)
    return begin, at(region.last, begin, unique=False) + 1


def _is_at(text: str, line: str) -> bool:
    """Whether a line contains a text, or begins with it where that is written `^text`."""
    return line.startswith(text[1:]) if text.startswith("^") else text in line


def _with_parts(name: str, text: str, choose: Callable[[_Part], list[str]]) -> str:
    """A file with each part between markers replaced; without markers, the file itself."""
    kept, solution, starter, state, opened = [], [], [], "", None
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
                    *_moved("\n".join(_comment(opened["todo"] or "", name)), _indentation([opened[0]])),
                    *starter,
                ]
            kept += choose(_Part(opened["name"] or "", solution, starter))
            state = ""
        elif state == "starter":
            starter.append(re.sub(r"^(\s*)(?://|#) ?", r"\1", line))
        elif state == "solution":
            solution.append(line)
        else:
            kept.append(line)
    if state:
        raise UserError(f"{name}: BEGIN SOLUTION without END SOLUTION")
    return "\n".join(kept) + "\n" if text.endswith("\n") else "\n".join(kept)


def _wrong(exercise: Exercise, folder: Path) -> Files:
    """One wrong answer: what its folder replaces, and the solution elsewhere."""
    given = {name: text for name, text in _texts(folder).items() if name != SAYS}
    if not given:
        raise UserError(f"exercise {exercise.id}: wrong/{folder.name} replaces nothing")
    if exercise.kind == "predict" and ANSWERS in given:
        right = {question.name: question.answer for question in exercise.questions}
        return {**solution(exercise), ANSWERS: _questions(exercise, right | read_answers(given[ANSWERS]))}
    used: set[str] = set()

    def choose(part: _Part) -> list[str]:
        stem = part.name if exercise.kind == "write" else f"SOLUTION-{part.name}" if part.name else "SOLUTION"
        file = next((name for name in given if Path(name).stem == stem), None)
        if file is None:
            return part.solution
        used.add(file)
        return part.indented(given[file])

    files = _base(exercise, choose)
    for name in sorted(given.keys() - used):
        _replace(exercise, files, name, given[name], f"wrong/{folder.name}/{name}")
    return files


def _replace(exercise: Exercise, files: Files, name: str, text: str, what: str) -> None:
    """Puts a text in place of the file of that name, or changes it where the name ends with `.diff`."""
    changed = name.removesuffix(DIFF)
    if changed not in files:
        raise UserError(f"exercise {exercise.id}: {what} replaces nothing")
    try:
        files[changed] = text if changed == name else patched(files[changed], text)
    except ValueError as error:
        raise UserError(f"exercise {exercise.id}: {what} does not fit {changed}: {error}") from None


def _questions(exercise: Exercise, answers: dict[str, str] | None = None) -> str:
    """The text of answers.ini."""
    parts = ["# Write your answers behind the = signs, then: make check", "[answers]"]
    for question in exercise.questions:
        answer = (answers or {}).get(question.name, "")
        parts += ["", *(f"# {line}" for line in question.ask.splitlines()), f"{question.name} = {answer}".rstrip()]
    return "\n".join(parts) + "\n"


def read_answers(text: str) -> dict[str, str]:
    """What is behind the = signs of an answers.ini. Raises configparser.Error for a text that is none."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=False)
    parser.read_string(text)
    return dict(parser["answers"]) if parser.has_section("answers") else {}


def _texts(folder: Path) -> Files:
    """The text of every file in a folder, by its path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


def _comment(text: str, file: str) -> list[str]:
    """A TODO as a comment in the language of a file."""
    sign = COMMENTS.get(Path(file).suffix, "//")
    first, *others = text.splitlines() or [""]
    return [f"{sign} TODO: {first}".removesuffix(": "), *(f"{sign} {line}".rstrip() for line in others)]


def _indentation(lines: list[str]) -> str:
    line = next((line for line in lines if line.strip()), "")
    return line[: len(line) - len(line.lstrip())]


def _moved(text: str, indentation: str) -> list[str]:
    """The lines of a text, indented as a whole to where it is to stand."""
    return textwrap.indent(textwrap.dedent(text).strip("\n"), indentation).splitlines()
