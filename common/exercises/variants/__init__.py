"""The files of an exercise, generated from one source: the starter, the solution, and each wrong or right answer.

A variant is a dictionary from path to text: the complete contents of a learner's folder.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable
from pathlib import Path

from ...errors import UserError
from ..exercise import MANIFEST, Exercise
from .answers import ANSWERS, format_answers, read_answers
from .diffs import apply_diff
from .known import FILE, Known, read_known
from .parts import Part, replace_marked_parts, replace_regions

Files = dict[str, str]
DIFF = ".diff"
PART_BORDER = "\0"  # marks the borders of a part to count its lines; never a line of a source
COMMENT = re.compile(r"\s*(?://|#) (.*)")


def starter(exercise: Exercise) -> Files:
    """The files that the learner begins with."""
    files = _base(exercise, lambda part: part.starter)
    if "starter" in (known := known_answers(exercise)):
        for name, text in known["starter"].files.items():
            _replace(exercise, files, name, text, f"starter/{name}")
    if exercise.kind == "predict":
        files[ANSWERS] = format_answers(exercise.questions)
    return files


def is_starter(exercise: Exercise, folder: Path) -> bool:
    """Whether a folder holds the unchanged starter."""
    try:
        return all((folder / name).read_text(encoding="utf-8") == text for name, text in starter(exercise).items())
    except (OSError, UnicodeDecodeError):
        return False


def is_unchanged(exercise: Exercise, folder: Path) -> bool:
    """Whether a folder holds the unchanged starter, and no file was added to it or to its csrc/."""
    files = starter(exercise)
    there = (path for pattern in ("*", "csrc/*") for path in folder.glob(pattern) if path.is_file())
    added = (path for path in there if not path.name.startswith(".") and str(path.relative_to(folder)) not in files)
    return is_starter(exercise, folder) and not any(added)


def starting_points(exercise: Exercise) -> list[str]:
    """Where to begin: a line for each TODO of the starter; without any, for each file that the solution changes."""
    files = starter(exercise)
    if found := find_todos(files):
        return [f"  {file}:{line}: {text}" for file, line, text in found]
    return [f"  {file}" for file, text in solution(exercise).items() if text != files.get(file)]


def solution(exercise: Exercise) -> Files:
    """The files of our solution."""
    files = _base(exercise, lambda part: part.solution)
    if exercise.kind == "predict":
        files[ANSWERS] = format_answers(exercise.questions, _right_answers(exercise))
    return files


def without_answers(exercise: Exercise) -> Files:
    """The solution with the parts that the learner writes left empty."""
    return _base(exercise, lambda part: [])


def learner_lines(exercise: Exercise) -> dict[str, set[int]]:
    """The lines of the solution (from 0) that the learner writes: its parts, or lines that the starter lacks."""
    ours, theirs = solution(exercise), starter(exercise)
    found: dict[str, set[int]] = {}
    for name, text in _base(exercise, lambda part: [PART_BORDER, *part.solution, PART_BORDER]).items():
        if PART_BORDER in text:
            found[name] = _bordered_lines(text)
        elif text != theirs.get(name):
            old, new = (files.get(name, "").splitlines() for files in (theirs, ours))
            codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
            found[name] = {k for what, _, _, first, last in codes if what != "equal" for k in range(first, last)}
    return found


def _bordered_lines(text: str) -> set[int]:
    """The numbers of the lines between two borders, not counting the borders."""
    found, number, is_inside = set(), 0, False
    for line in text.splitlines():
        if line == PART_BORDER:
            is_inside = not is_inside
            continue
        if is_inside:
            found.add(number)
        number += 1
    return found


def wrong(exercise: Exercise) -> dict[str, Files]:
    """Each wrong answer by its name. Raises `UserError` for an answer that matches no file or part."""
    return _answers(exercise, "wrong")


def right(exercise: Exercise) -> dict[str, Files]:
    """Each answer that differs from the solution and passes, by its name. Raises `UserError` as `wrong` does."""
    return _answers(exercise, "right")


def expected_messages(exercise: Exercise, name: str) -> list[str]:
    """The fragments that the message for a wrong answer must contain."""
    return known_answers(exercise)[f"wrong/{name}"].says


def known_answers(exercise: Exercise) -> dict[str, Known]:
    """What known_answers.txt holds, by "starter", "wrong/NAME" or "right/NAME"; empty if there is no such file."""
    path = exercise.folder / FILE
    if (exercise.folder / "wrong").is_dir():
        convert = f"python -m common.exercises.variants.convert {path.parent}"
        raise UserError(f"exercise {exercise.id}: {FILE} takes the place of wrong/, right/ and starter/: {convert}")
    try:
        return read_known(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise UserError(f"exercise {exercise.id}: {FILE}: {error}") from None


def find_todos(files: Files) -> list[tuple[str, int, str]]:
    """The TODOs of a starter: file, line and text, which may continue in the comment lines below."""
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


def _base(exercise: Exercise, choose: Callable[[Part], list[str]]) -> Files:
    """All files, with each part in the chosen form."""
    if exercise.kind == "write":
        files = _stage_files(exercise)
        for file in dict.fromkeys(region.file for region in exercise.regions):
            files[file] = replace_regions(exercise, file, files, choose)
        return files
    return {
        name: replace_marked_parts(name, text, choose) for name, text in read_files(exercise.folder / "files").items()
    }


def _stage_files(exercise: Exercise) -> Files:
    """The stage's files that are handed out: its package without the README and without excluded files."""
    folder = exercise.source.folder
    paths = [*folder.glob("*.py"), *(path for path in (folder / "csrc").rglob("*") if path.is_file())]
    names = {str(path.relative_to(folder)): path for path in sorted(paths)}
    if unknown := set(exercise.without) - names.keys():
        raise UserError(f"exercise {exercise.id}: {MANIFEST}: without = {' '.join(sorted(unknown))}: no such file")
    return {name: path.read_text(encoding="utf-8") for name, path in names.items() if name not in exercise.without}


def _answers(exercise: Exercise, kind: str) -> dict[str, Files]:
    known = sorted((what, one.files) for what, one in known_answers(exercise).items() if what.startswith(f"{kind}/"))
    return {what.removeprefix(f"{kind}/"): _answer(exercise, what, given) for what, given in known}


def _answer(exercise: Exercise, what: str, given: Files) -> Files:
    """One answer: the solution with the given files and parts replaced."""
    if exercise.kind == "predict" and ANSWERS in given:
        answers = _right_answers(exercise) | read_answers(given[ANSWERS])
        return {**solution(exercise), ANSWERS: format_answers(exercise.questions, answers)}
    used: set[str] = set()

    def choose(part: Part) -> list[str]:
        stem = part.name if exercise.kind == "write" else f"SOLUTION-{part.name}" if part.name else "SOLUTION"
        file = next((name for name in given if Path(name).stem == stem), None)
        if file is None:
            return part.solution
        used.add(file)
        return part.indented(given[file])

    files = _base(exercise, choose)
    for name in sorted(given.keys() - used):
        _replace(exercise, files, name, given[name], f"{what}/{name}")
    return files


def _right_answers(exercise: Exercise) -> dict[str, str]:
    return {question.name: question.answer for question in exercise.questions}


def _replace(exercise: Exercise, files: Files, name: str, text: str, what: str) -> None:
    """Replaces the file of that name with a text, or applies the text as a diff if the name ends with `.diff`."""
    changed = name.removesuffix(DIFF)
    if changed not in files:
        raise UserError(f"exercise {exercise.id}: {what} replaces nothing")
    try:
        files[changed] = text if changed == name else apply_diff(files[changed], text)
    except ValueError as error:
        raise UserError(f"exercise {exercise.id}: {what} does not fit {changed}: {error}") from None


def read_files(folder: Path) -> Files:
    """The text of every file in a folder, by its path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
