"""`make grade DIR=submissions/`: a table of a class's work, a row a student, as CSV and as JSON.

What a student handed in runs in a sandbox only, and what comes out of there is numbers and text: the comparison, the
points and the files are made here. So the worst that a submission can do is to fail.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..console import say, step
from ..errors import UserError
from ..stages import ROOT
from . import Exercise, every, find, place, sandbox, submissions, variants
from .exercise import shown
from .sandbox import Sandbox
from .target import targets_of

if TYPE_CHECKING:
    from .checking import Verdict

OUT = ROOT / "out"
CSV, JSON = OUT / "grades.csv", OUT / "grades.json"


@dataclass(frozen=True)
class Mark:
    """What one student gets for one exercise. `outcome` is "passed", "failed", "refused" (what was handed in is not
    looked into), "untouched" (the starter as it was given out) or "not handed in"; `message` says why.
    """

    exercise: str
    points: int
    of: int
    outcome: str
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """A student's marks, in the order of the exercises."""

    student: str
    marks: tuple[Mark, ...]

    @property
    def points(self) -> int:
        """The sum."""
        return sum(mark.points for mark in self.marks)


def grade(
    folder: str,
    *,
    only: Sequence[str] = (),
    kind: str | None = None,
    image: str | None = None,
    jobs: int | None = None,
    csv_path: str | None = None,
    json_path: str | None = None,
) -> int:
    """Grades each student's folder in `folder`, writes both files and shows a summary; always 0.

    Raises `UserError` when there is nothing to grade, no sandbox to do it in, or a solution that does not pass here.
    """
    if not folder:
        raise UserError("whose work? make grade DIR=submissions/, with a folder in it for each student")
    exercises = [find(name) for name in only] or every()
    students = submissions.students(Path(folder))
    paths = Path(csv_path or CSV), Path(json_path or JSON)
    box = sandbox.choose(kind or None, image or "")
    jobs = jobs or max(1, (os.cpu_count() or 1) // 2)
    how = f"in {box.kind}, without network" if box else "WITHOUT a sandbox: what is handed in can do all that you can"
    say(f"{len(students)} students, {len(exercises)} exercises, {how}; {jobs} at a time")
    for path in paths:
        write(path)  # what cannot be written is said now
    started = time.perf_counter()
    with step("our own solutions first"):
        for exercise in exercises:
            prepare(exercise, box)
    rows: list[Row] = []
    pool = ThreadPoolExecutor(jobs)
    try:
        for made in pool.map(lambda student: row(student, exercises, box), students):
            rows.append(told(made))
            report(rows, exercises, box, paths)  # as far as it is, should something stop us
    finally:
        pool.shutdown(cancel_futures=True)
    say(f"{time.perf_counter() - started:.0f} s; written: {', '.join(map(shown, paths))}")
    return 0


def report(rows: Sequence[Row], exercises: Sequence[Exercise], box: Sandbox | None, paths: tuple[Path, Path]) -> None:
    """Writes the CSV and the JSON. Raises `UserError` when that cannot be."""
    for path, text in zip(paths, (as_csv(rows, exercises), as_json(rows, exercises, box)), strict=True):
        write(path, text)


def prepare(exercise: Exercise, box: Sandbox | None) -> None:
    """Checks our solution: what students did not change is built then, and nobody pays for a machine that cannot.

    Raises `UserError` when it does not pass here.
    """
    with tempfile.TemporaryDirectory(prefix="solution-") as work:
        folder = Path(work)
        folder.chmod(0o755)
        place.write(variants.solution(exercise), folder / "work")
        boxes = [None, box] if box and exercise.needs else [box]  # builds in a sandbox leave nothing behind
        for each in boxes:
            verdict = checked(exercise, folder / "work", each)
            if not verdict.passed:
                raise UserError(f"{exercise.id}: our own solution does not pass here.\n{verdict.message}")


def checked(exercise: Exercise, folder: Path, box: Sandbox | None) -> Verdict:
    """What a check says, on the CPU whatever there is: the same for all, and a sandbox has no GPU."""
    from .checking import check  # imports torch
    from .confined import Confined

    target = targets_of(exercise)[0]
    if box is None:
        return check(exercise, folder, target=target)
    with Confined(box) as confined:
        return check(exercise, folder, target=target, confined=confined)


def row(student: Path, exercises: Sequence[Exercise], box: Sandbox | None) -> Row:
    """A student's marks."""
    return Row(submissions.plain(student.name, 100), tuple(mark(student, exercise, box) for exercise in exercises))


def mark(student: Path, exercise: Exercise, box: Sandbox | None) -> Mark:
    """What one student gets for one exercise. Whatever goes wrong here is no points for it, and goes no further."""
    begun = time.perf_counter()

    def made(outcome: str, message: str = "", points: int = 0) -> Mark:
        seconds = round(time.perf_counter() - begun, 2)
        return Mark(exercise.id, points, exercise.points, outcome, submissions.plain(message), seconds)

    copy = Path(tempfile.mkdtemp(prefix="graded-"))
    copy.chmod(0o755)  # the user inside is another one
    try:
        source = submissions.handed_in(student, exercise.id)
        if source is None:
            return made("not handed in")
        submissions.copy(source, copy)
        if variants.is_starter(exercise, copy):
            return made("untouched")
        verdict = checked(exercise, copy, box)
        if verdict.passed:
            return made("passed", points=exercise.points)
        return made("failed", by_the_sandbox(verdict.printed) or verdict.message)
    except submissions.Refused as reason:
        return made("refused", str(reason))
    except Exception as error:  # a submission may well find a way to upset a check
        return made("failed", f"the check was upset by what came back: {type(error).__name__}: {error}")
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def by_the_sandbox(printed: str) -> str:
    """What the watch or the fence has said; anybody can print such a line, and has nothing from it."""
    return next((line for line in printed.splitlines() if line.startswith("sandbox: ")), "")


def told(row: Row) -> Row:
    """Shows a student's sum, and what the points were lost on, as soon as it is there."""
    of = sum(mark.of for mark in row.marks)
    counts = {name: sum(mark.outcome == name for mark in row.marks) for name in OUTCOMES}
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    say(f"  {row.student:<24} {row.points:>3} of {of}" + (f"   {others}" if others else ""))
    return row


OUTCOMES = ("failed", "refused", "untouched", "not handed in")


def as_csv(rows: Sequence[Row], exercises: Sequence[Exercise]) -> str:
    """A line a student: points of each exercise, empty where nothing was handed in, and why points were lost."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", *(exercise.id for exercise in exercises), "total", "of", "remarks"])
    for row in rows:
        points = ["" if mark.outcome in ("untouched", "not handed in") else mark.points for mark in row.marks]
        remarks = " | ".join(f"{m.exercise}: {beginning(m)}" for m in row.marks if m.outcome in ("failed", "refused"))
        of = sum(mark.of for mark in row.marks)
        table.writerow([harmless(row.student), *points, row.points, of, harmless(remarks)])
    return text.getvalue()


def beginning(mark: Mark) -> str:
    """What is said about a mark, in one line."""
    return submissions.plain(" ".join(mark.message.split()), 150)


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t")) else cell


def as_json(rows: Sequence[Row], exercises: Sequence[Exercise], box: Sandbox | None) -> str:
    """The same with every message in full."""
    return json.dumps(
        {
            "date": datetime.date.today().isoformat(),
            "sandbox": box.kind if box else "none",
            "exercises": [{"id": each.id, "title": each.title, "points": each.points} for each in exercises],
            "students": [
                {"student": row.student, "total": row.points, "marks": [asdict(mark) for mark in row.marks]}
                for row in rows
            ],
        },
        indent=1,
    )


def write(path: Path, text: str | None = None) -> None:
    """Writes a file; without a text only tries to. Raises `UserError` when that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.open("a").close()
        else:
            path.write_text(text if text.endswith("\n") else f"{text}\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
