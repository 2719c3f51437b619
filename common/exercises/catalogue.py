"""All exercises: those of the stages, and a teacher's own in the folders that EXERCISES names."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from .. import stages
from ..errors import UserError
from .exercise import CHECK_FILE, MANIFEST, Exercise, read_exercise


def every() -> list[Exercise]:
    """All exercises, sorted by stage and then by their `order`, including those of the folders in EXERCISES.

    Such a folder belongs to a teacher. It holds exercises as `N/NAME/`; where that holds only a check.py, it replaces
    the check of the workbook's exercise. Raises `UserError` for an invalid manifest.
    """
    found = [
        read_exercise(path.parent, stage.number)
        for stage in stages.STAGES
        for path in stage.folder.glob(f"exercises/*/{MANIFEST}")
    ]
    by_id = {exercise.id: exercise for exercise in found}
    for folder in filter(None, os.environ.get("EXERCISES", "").split(os.pathsep)):
        by_id |= {exercise.id: exercise for exercise in _read_private(Path(folder).expanduser().resolve(), by_id)}
    return sorted(by_id.values(), key=lambda exercise: (exercise.stage, exercise.order, exercise.name))


def _read_private(folder: Path, ours: dict[str, Exercise]) -> list[Exercise]:
    """A teacher's exercises, and the workbook's exercises whose check the teacher replaces."""
    found = [read_exercise(path.parent, int(path.parent.parent.name)) for path in folder.glob(f"[0-9]/*/{MANIFEST}")]
    for path in folder.glob(f"[0-9]/*/{CHECK_FILE}"):
        name = f"{path.parent.parent.name}/{path.parent.name}"
        if (path.parent / MANIFEST).exists():
            continue
        if name not in ours:
            raise UserError(
                f"EXERCISES: {path.parent} has no {MANIFEST}, and there is no exercise {name} that it could check"
            )
        found.append(replace(ours[name], check_file=path))
    if not found:
        raise UserError(f"EXERCISES: there is no N/NAME/{MANIFEST} in {folder}")
    return found


def find(name: str) -> Exercise:
    """The exercise called `3/guard`, or `guard` if only one stage has it. Raises `UserError` for any other name."""
    wanted = name.strip("/")
    for prefix in ("work/", "stages/"):
        wanted = wanted.removeprefix(prefix)
    all_here = every()
    found = [exercise for exercise in all_here if wanted in (exercise.id, exercise.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{name!r} is the name of several exercises: {', '.join(exercise.id for exercise in found)}")
    stage = wanted.partition("/")[0]
    near = [exercise.id for exercise in all_here if str(exercise.stage) == stage] or [e.id for e in all_here]
    raise UserError(f"there is no exercise {name!r}; the exercises are {', '.join(near)}")
