"""`make mutate`: checks every mutant of an exercise and records how many of them the check rejects."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

from ...console import say
from ...errors import UserError
from ...exercises import variants, workspace
from ...exercises.catalogue import every, find
from ...exercises.checking import Verdict, check_folder
from ...exercises.exercise import Exercise
from ...exercises.runner.builds import remove_builds
from ...exercises.runner.target import exercise_targets
from ...paths import display_path
from ...results import records
from . import STUDY
from .equivalents import read_equivalents
from .mutants import Mutant, find_mutants

OUTCOMES = ("killed", "survived", "equivalent", "not viable")


def mutate(names: Sequence[str], jobs: int | None = None) -> int:
    """Shows which mutants of these exercises, or of "all", survive their checks; returns 1 if any does.

    Raises `UserError` if a solution does not pass.
    """
    exercises = every() if "all" in names else [find(name) for name in names]
    survived = 0
    for exercise in exercises:
        counted = run_mutants(exercise, jobs or max(1, (os.cpu_count() or 1) // 2))
        record_counts(exercise, counted)
        survived += counted["survived"]
    return int(survived > 0)


def run_mutants(exercise: Exercise, jobs: int) -> Counter[str]:
    """How many mutants had each outcome; shows those that survived, took too long or are not viable, as diffs."""
    start = time.perf_counter()
    verdict = check_files(exercise, variants.solution(exercise))
    if not verdict.passed:
        raise UserError(f"{exercise.id}: our own solution does not pass on this machine.\n{verdict.message}")
    seconds = min(exercise.seconds, 10 + 2 * verdict.seconds)  # a mutant may never end
    mutants, equivalents = find_mutants(exercise), read_equivalents(exercise)
    say(f"exercise {exercise.id}: {len(mutants)} mutants, {jobs} at a time")
    counted: Counter[str] = Counter()
    with ThreadPoolExecutor(jobs) as pool:
        verdicts = pool.map(partial(check_mutant, exercise, seconds=seconds), mutants)
        for mutant, verdict in zip(mutants, verdicts, strict=True):
            outcome = find_outcome(mutant, verdict, mutant.key in equivalents)
            counted[outcome] += 1
            show_mutant(exercise, mutant, outcome, verdict, mutant.key in equivalents)
    for file, diff in equivalents.keys() - {mutant.key for mutant in mutants}:
        say(f"equivalent.txt has a diff of {file} that matches no mutant:\n{diff}")
    numbers = ", ".join(f"{counted[outcome]} {outcome}" for outcome in OUTCOMES)
    say(f"exercise {exercise.id}: {numbers} ({time.perf_counter() - start:.0f} s)")
    return counted


def find_outcome(mutant: Mutant, verdict: Verdict, is_equivalent: bool) -> str:
    """One of `OUTCOMES`. A check that fails with an error of its own has not rejected the mutant.

    A setup.py that does not build is a wrong answer; C++ that does not compile says nothing about the check.
    """
    if verdict.kind == "build" and not mutant.file.endswith(".py"):
        return "not viable"
    if verdict.kind not in ("passed", "checker"):
        return "killed"
    return "equivalent" if is_equivalent else "survived"


def show_mutant(exercise: Exercise, mutant: Mutant, outcome: str, verdict: Verdict, is_equivalent: bool) -> None:
    """Prints a mutant that needs attention; prints nothing if it was killed as expected."""
    where = f"{mutant.file}:{mutant.line}"
    if outcome == "survived":
        say(f"survived, {where}{': the check itself failed' * (verdict.kind == 'checker')}\n{mutant.diff}")
    elif outcome == "not viable":
        say(f"not viable, {where}\n{mutant.diff}")
    elif verdict.kind == "time":  # an endless loop, or a machine that was busy
        say(f"killed because it ran out of time, {where}\n{mutant.diff}")
    elif outcome == "killed" and is_equivalent:
        say(
            f"killed, {where}, although equivalent.txt lists it: "
            f"{' '.join(verdict.message.split())[:200]}\n{mutant.diff}"
        )


def check_mutant(exercise: Exercise, mutant: Mutant, seconds: float) -> Verdict:
    """The verdict of the check on a mutant."""
    return check_files(exercise, {**variants.solution(exercise), mutant.file: mutant.text}, seconds)


def check_files(exercise: Exercise, files: Mapping[str, str], seconds: float | None = None) -> Verdict:
    """The verdict of the check on these files, on the CPU even if there is a GPU; their build is not kept."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        work = Path(folder).resolve() / exercise.name
        workspace.write_files(dict(files), work)
        try:
            target = exercise_targets(exercise)[0]
            return check_folder(exercise, work, timeout=seconds, target=target, start_early=False)
        finally:
            remove_builds(work)


def record_counts(exercise: Exercise, counted: Mapping[str, int]) -> None:
    """Writes the row of an exercise to the record. Rows of others stay: outcomes do not depend on the machine."""
    record = STUDY.read_record() or {"sources": {}, "rows": []}
    record["sources"][exercise.id] = hash_exercise(exercise)
    row = {"exercise": exercise.id, "date": records.utc_now(), "torch": version("torch")}
    row |= {name.replace(" ", "_"): counted.get(name, 0) for name in OUTCOMES}
    others = [other for other in record["rows"] if other["exercise"] != exercise.id]
    record["rows"] = sorted([*others, row], key=lambda one: one["exercise"])
    records.save(record, STUDY.record())
    say(f"Written to {display_path(STUDY.record())}")


def hash_exercise(exercise: Exercise) -> str:
    """A hash of what determines the row: the mutants, the check, and the mutants known to be equivalent."""
    keys = sorted(mutant.key for mutant in find_mutants(exercise))
    known = sorted(read_equivalents(exercise))
    text = json.dumps([keys, known, exercise.check_file.read_text(encoding="utf-8")])
    return hashlib.sha256(text.encode()).hexdigest()
