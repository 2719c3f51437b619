"""`make grade DIR=submissions/`: grades a class and writes a table, one row for each student, as CSV and JSON.

Submissions run only in a sandbox, which returns numbers and text. The results are compared, the points computed and
the files written outside of it. So the worst that a submission can do is to fail.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...console import say, step
from ...errors import UserError
from ...paths import ROOT, display_path
from .. import variants, workspace
from ..catalogue import every, find
from ..exercise import Exercise
from ..runner.target import exercise_targets
from . import sandbox, submissions
from .sandbox import Sandbox

if TYPE_CHECKING:
    from ..checking import Verdict

OUT = ROOT / "out"
CSV, JSON = OUT / "grades.csv", OUT / "grades.json"
LONGEST_REMARK = 500  # characters, about as many as a cell of a spreadsheet can show
FORMULA = re.compile(r"""(?:^|(?<=[\s,;:|"']))(?=[=+\-@＝＋－＠])""")
MOST_LINES = 10  # of the output of an answer that does not pass, and of the lines to look at


@dataclass(frozen=True)
class Mark:
    """A student's result for one exercise. `outcome` is "passed", "failed", "refused" (the submission was not
    checked), "untouched" (the unchanged starter) or "not handed in"; `message` gives the reason.

    `look_at` are lines that a teacher should read before the points count: see docs/teaching.md. `printed` are the
    last lines that the answer printed, if it did not pass.
    """

    exercise: str
    points: int
    of: int
    outcome: str
    message: str = ""
    seconds: float = 0.0
    look_at: tuple[str, ...] = ()
    printed: str = ""


@dataclass(frozen=True)
class StudentRow:
    """A student's marks, in the order of the exercises. `remark` says why nothing of a student is graded."""

    student: str
    marks: tuple[Mark, ...]
    remark: str = ""

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

    An exercise whose solution does not pass on this machine is left out, and the reason is shown and written.
    Raises `UserError` if there is nothing to grade, no sandbox, or no exercise whose solution passes.
    """
    if not folder:
        raise UserError("DIR is missing: make grade DIR=submissions/, which holds a folder for each student")
    exercises = [find(name) for name in only] or every()
    students, others = submissions.find_students(Path(folder)), submissions.find_others(Path(folder))
    paths = Path(csv_path or CSV), Path(json_path or JSON)
    box = sandbox.choose_sandbox(kind or None, image or "")
    jobs = jobs or max(1, (os.cpu_count() or 1) // 2)
    how = f"in {box.kind}, without network" if box else "WITHOUT a sandbox: submissions run with all your permissions"
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may have letters that the terminal lacks
    say(f"{len(students)} students, {len(exercises)} exercises, {how}; {jobs} at a time")
    for path in paths:
        write_file(path)  # report now if a file cannot be written
    started = time.perf_counter()
    left_out = check_solutions(exercises, box, jobs)
    exercises = [exercise for exercise in exercises if exercise.id not in left_out]
    rows = [print_row(refuse(name, reason, exercises)) for name, reason in others.items()]
    pool = ThreadPoolExecutor(jobs)
    try:
        for result in pool.map(lambda student: grade_student(student, exercises, box), students):
            rows.append(print_row(result))
            write_tables(
                rows, exercises, box, paths, left_out
            )  # write after each student, in case of an interruption
    finally:
        pool.shutdown(cancel_futures=True)
    for name, reason in left_out.items():
        say(f"{name} is not graded: {reason.splitlines()[0]}")
    say(f"{time.perf_counter() - started:.0f} s; written: {', '.join(map(display_path, paths))}")
    return 0


def write_tables(
    rows: Sequence[StudentRow],
    exercises: Sequence[Exercise],
    box: Sandbox | None,
    paths: tuple[Path, Path],
    left_out: Mapping[str, str],
) -> None:
    """Writes the CSV and the JSON. Raises `UserError` if that fails."""
    texts = as_csv(rows, exercises, left_out), as_json(rows, exercises, box, left_out)
    for path, text in zip(paths, texts, strict=True):
        write_file(path, text)


def check_solutions(exercises: Sequence[Exercise], box: Sandbox | None, jobs: int) -> dict[str, str]:
    """Grades our solutions; why those exercises cannot be graded here whose solution does not pass, by exercise.

    Shows each reason as soon as it is known. Raises `UserError` if no solution passes.
    """
    left_out: dict[str, str] = {}
    pool = ThreadPoolExecutor(jobs)
    try:
        pending = [(exercise.id, pool.submit(check_solution, exercise, box)) for exercise in exercises]
        for name, solution in pending:
            try:
                with step(f"our own solution of {name} first"):
                    solution.result()
            except Exception as error:
                reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                left_out[name] = submissions.sanitize(reason)
                say(left_out[name])
    finally:
        pool.shutdown(cancel_futures=True)
    if len(left_out) == len(exercises):
        raise UserError("nothing can be graded.\n" + "\n".join(left_out.values()))
    return left_out


def refuse(name: str, reason: str, exercises: Sequence[Exercise]) -> StudentRow:
    """The row of an entry of the class's folder that is not a student's folder."""
    marks = (Mark(exercise.id, 0, exercise.points, "refused", reason) for exercise in exercises)
    return StudentRow(submissions.sanitize_name(name), tuple(marks), reason)


def check_solution(exercise: Exercise, box: Sandbox | None) -> Mark:
    """Builds the starter and grades our solution first, so that a fault of this machine costs no student points.

    Raises `UserError` if our solution does not pass on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="solution-") as work:
        folder = Path(work)
        folder.chmod(0o755)
        if box and exercise.needs:
            from .isolation import build_given

            workspace.write_files(variants.starter(exercise), folder / "starter")
            build_given(folder / "starter", exercise_targets(exercise)[0])
        workspace.write_files(variants.solution(exercise), folder / "student" / exercise.id)
        mark = grade_exercise(folder / "student", exercise, box)
    if mark.outcome != "passed":
        printed = "".join(f"\n  {line}" for line in mark.printed.splitlines())
        said = f"{mark.message}\nIt printed:{printed}" if printed else mark.message
        raise UserError(f"{exercise.id}: our own solution does not pass on this machine.\n{said}")
    return mark


def check_isolated(exercise: Exercise, folder: Path, box: Sandbox | None) -> Verdict:
    """The verdict of a check, always on the CPU: this is the same for all students, and a sandbox has no GPU."""
    from ..checking import check_folder  # imports torch
    from .isolation import Isolation

    target = exercise_targets(exercise)[0]
    if box is None:
        return check_folder(exercise, folder, target=target)
    with Isolation(box) as isolation:
        verdict = check_folder(exercise, folder, target=target, isolation=isolation)
        printed = "\n".join(filter(None, [verdict.printed, isolation.printed]))
        message = verdict.message if verdict.passed else sandbox.find_message(printed) or verdict.message
        return replace(verdict, message=message, printed=printed)


def grade_student(student: Path, exercises: Sequence[Exercise], box: Sandbox | None) -> StudentRow:
    """A student's marks."""
    return StudentRow(
        submissions.sanitize_name(student.name),
        tuple(grade_exercise(student, exercise, box) for exercise in exercises),
    )


def grade_exercise(student: Path, exercise: Exercise, box: Sandbox | None) -> Mark:
    """A student's result for one exercise. Any error means no points for this exercise and affects no other."""
    start = time.perf_counter()

    def result(outcome: str, message: str = "", points: int = 0) -> Mark:
        seconds = round(time.perf_counter() - start, 2)
        return Mark(exercise.id, points, exercise.points, outcome, submissions.sanitize(message), seconds)

    copy = Path(tempfile.mkdtemp(prefix="graded-"))
    copy.chmod(0o755)  # the sandbox runs as another user
    try:
        source = submissions.find_submission(student, exercise.id)
        if source is None:
            return result("not handed in", submissions.find_elsewhere(student, exercise.id))
        submissions.copy_files(source, copy)
        if variants.is_starter(exercise, copy):
            return result("untouched")
        # Searched before the check, which may add programs to the copy.
        look_at = submissions.find_suspicious(copy, variants.starter(exercise))
        verdict = check_isolated(exercise, copy, box)
        if verdict.passed:
            return replace(result("passed", points=exercise.points), look_at=tuple(look_at[:MOST_LINES]))
        printed = "\n".join(verdict.printed.splitlines()[-MOST_LINES:])
        return replace(result("failed", verdict.message), printed=submissions.sanitize(printed))
    except submissions.Refused as reason:
        return result("refused", str(reason))
    except Exception as error:  # a submission may find a way to break a check
        return result("failed", f"the check could not process the answer: {type(error).__name__}: {error}")
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def print_row(row: StudentRow) -> StudentRow:
    """Shows a student's total and the outcomes that lost points, as soon as they are known."""
    of = sum(mark.of for mark in row.marks)
    counts = {name: sum(mark.outcome == name for mark in row.marks) for name in OUTCOMES}
    others = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    others = row.remark or others
    say(f"  {row.student:<24} {row.points:>3} of {of}" + (f"   {others}" if others else ""))
    return row


OUTCOMES = ("failed", "refused", "untouched", "not handed in")


def as_csv(
    rows: Sequence[StudentRow], exercises: Sequence[Exercise], left_out: Mapping[str, str] | None = None
) -> str:
    """One line for each student: points for each exercise (empty if not handed in) and why points were lost."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", *(exercise.id for exercise in exercises), "total", "of", "remarks"])
    for row in rows:
        points = ["" if mark.outcome in ("untouched", "not handed in") else mark.points for mark in row.marks]
        told = [m for m in row.marks if m.look_at or (m.message and m.outcome != "passed")]
        said = [row.remark] if row.remark else [f"{mark.exercise}: {summarise(mark)}" for mark in told]
        remarks = " | ".join([*said, *(f"{name}: not graded, see the JSON" for name in left_out or ())])
        of = sum(mark.of for mark in row.marks)
        table.writerow([escape_formula(row.student), *points, row.points, of, escape_formula(remarks)])
    return text.getvalue()


def summarise(mark: Mark) -> str:
    """The remark about a mark, in one line."""
    said = f"passed, but look at {', '.join(mark.look_at)}" if mark.look_at else mark.message
    return submissions.sanitize(" ".join(said.split()), LONGEST_REMARK)


def escape_formula(cell: str) -> str:
    """The text of a cell, escaped so that no spreadsheet interprets any part of it as a formula.

    A spreadsheet may split the text again: where `;` separates cells, a comma does not, and the quotes around the
    text have another meaning. So the apostrophe comes wherever a cell could begin.
    """
    return FORMULA.sub("'", cell)


def as_json(
    rows: Sequence[StudentRow],
    exercises: Sequence[Exercise],
    box: Sandbox | None,
    left_out: Mapping[str, str] | None = None,
) -> str:
    """The same with every message in full."""
    return json.dumps(
        {
            "date": datetime.date.today().isoformat(),
            "sandbox": box.kind if box else "none",
            "exercises": [{"id": each.id, "title": each.title, "points": each.points} for each in exercises],
            "not_graded": [{"id": name, "reason": reason} for name, reason in (left_out or {}).items()],
            "students": [
                {"student": row.student, "total": row.points, "marks": [asdict(mark) for mark in row.marks]}
                for row in rows
            ],
        },
        indent=1,
    )


def write_file(path: Path, text: str | None = None) -> None:
    """Writes a file; without a text, only tests whether that is possible. Raises `UserError` if it is not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.open("a").close()
        else:
            path.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
