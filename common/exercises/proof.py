"""What is proven of the exercises, and what is to be proven again: tests/test_exercises.py asks here.

An exercise is proven by its starter, which fails helpfully, its solution, which passes, and each wrong answer, which
is told why. `make prove` proves all and writes tests/proof.json: for each a hash of what the proof depends on. Every
other run proves those whose hash differs, and each day another seventh of the rest.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from ..stages import ROOT
from . import place, variants
from .checking import Verdict, check
from .exercise import Exercise

RECORD = ROOT / "tests" / "proof.json"
DAYS = 7  # in which every exercise is proven once
# All of common/ may decide what a learner is told, but for these.
OTHERS = (
    *("ablation", "ablation_table", "bench", "clock", "contenders", "doctor", "environment", "facts", "kernels"),
    *("machine", "memory", "results", "variants"),
    *("decision", "diff", "finders", "mistakes", "ncu", "ncu_table", "new/*", "patterns", "primer/*", "sanitizer"),
    *("emulator_picture", "heat", "inline", "module", "notebooks", "pictures", "plots", "report", "syllabus"),
    *("tables", "touches", "tour", "trace", "trial", "wheels"),
    *("exercises/commands", "exercises/grade", "exercises/on_save", "exercises/proof", "exercises/submissions"),
)
KINDS = (".py", ".h", ".cpp", ".cu", ".cuh")


class Variant(NamedTuple):
    """One that an exercise is proven by: "starter", "solution", or "wrong/NAME"."""

    exercise: Exercise
    name: str

    def __str__(self) -> str:
        return f"{self.exercise.id}-{self.name}"

    @property
    def files(self) -> variants.Files:
        """All that the learner's folder holds."""
        if self.name.startswith("wrong/"):
            return variants.wrong(self.exercise)[self.name.removeprefix("wrong/")]
        return {"starter": variants.starter, "solution": variants.solution}[self.name](self.exercise)

    def judged(self) -> Verdict:
        """What a learner with these files is told. Its build is not kept."""
        from .judge import forget

        with tempfile.TemporaryDirectory(prefix="proof-") as folder:
            work = Path(folder).resolve() / self.exercise.name
            place.write(self.files, work)
            try:
                return check(self.exercise, work, ahead=False)
            finally:
                forget(work)


def of(exercise: Exercise) -> list[Variant]:
    """All variants of an exercise, the starter first."""
    names = ["starter", "solution", *(f"wrong/{name}" for name in variants.wrong(exercise))]
    return [Variant(exercise, name) for name in names]


def due(exercises: Sequence[Exercise], day: datetime.date | None = None) -> list[Exercise]:
    """Those that differ from what was proven, and those whose turn it is on a day (today)."""
    day, known = day or datetime.date.today(), recorded()
    today = [exercise for k, exercise in enumerate(exercises) if k % DAYS == day.toordinal() % DAYS]
    return [one for one in exercises if one in today or known.get(one.id, {}).get("hash") != fingerprint(one)]


def fingerprint(exercise: Exercise) -> str:
    """A hash of the exercise, its stage and the harness."""
    digest = hashlib.sha256(harness().encode())
    stage = exercise.source.folder
    sources = [*stage.glob("*.py"), *(stage / "csrc").rglob("*")]
    for folder, paths in ((stage, sources), (exercise.folder, exercise.folder.rglob("*"))):
        for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
            if path.parent == exercise.folder and path.name in ("README.md", "hints.md"):
                continue  # no check depends on them
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def harness() -> str:
    """A hash of what builds, runs and judges."""
    digest, common = hashlib.sha256(), ROOT / "common"
    for path in sorted(path for path in common.rglob("*") if path.suffix in KINDS):
        name = str(path.relative_to(common))
        if not any(fnmatch(name.removesuffix(".py"), other) for other in OTHERS):
            digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def recorded() -> dict[str, dict]:
    """What `make prove` has written: by exercise, its hash, and the seconds of each variant."""
    try:
        return json.loads(RECORD.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def record(seconds: dict[Variant, float], exercises: Sequence[Exercise]) -> None:
    """Writes down those exercises of which every variant is proven now, and drops those that there are no more.

    `seconds` are those that each took; `exercises` are all that there are.
    """
    known = recorded()
    for exercise in exercises:
        took = {variant.name: round(seconds[variant], 1) for variant in of(exercise) if variant in seconds}
        if len(took) == len(of(exercise)):
            known[exercise.id] = {"hash": fingerprint(exercise), "seconds": took}
    kept = {exercise.id: known[exercise.id] for exercise in exercises if exercise.id in known}
    made = RECORD.with_suffix(".new")
    made.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    made.replace(RECORD)
