"""`make diff-A-B`: shows what changes from one stage to another, which is the lesson of the stage."""

from __future__ import annotations

import subprocess
import sys

from .. import stages
from ..errors import UserError
from ..paths import ROOT
from ..stages import Stage

LESSON = ("lltm.py", "csrc", "setup.py")


def show_diff(old: int, new: int) -> int:
    """Shows lltm.py, csrc/ and setup.py of two stages as one diff; the status is 0 whether they differ or not.

    Raises `UserError` for a stage without a cell.
    """
    sides = [stages.get_stage(old), stages.get_stage(new)]
    for stage in sides:
        if stage.kind not in ("cell", "sequence"):
            raise UserError(f"stage {stage.number} ({stage.title}) has no cell to compare; read its README")
    print(diff_text(*sides, colour=sys.stdout.isatty()), end="")
    return 0


def diff_text(old: Stage, new: Stage, colour: bool = False) -> str:
    """The diff in git's format. A file that only one of the stages has is shown completely."""
    parts = []
    for name in LESSON:
        sides = [stage.folder / name for stage in (old, new)]
        sides = [str(side.relative_to(ROOT)) if side.exists() else "/dev/null" for side in sides]
        for a, b in _pairs(*sides):
            command = ["git", "diff", "--no-index", f"--color={'always' if colour else 'never'}", a, b]
            parts.append(subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout)
    return "".join(parts)


def _pairs(a: str, b: str) -> list[tuple[str, str]]:
    """The files to compare, file by file, because git cannot compare a folder with /dev/null."""
    names = sorted({path.name for side in (a, b) for path in (ROOT / side).glob("*") if path.is_file()})
    if not names:
        return [] if a == b else [(a, b)]
    files = []
    for name in names:
        sides = [f"{side}/{name}" if (ROOT / side / name).is_file() else "/dev/null" for side in (a, b)]
        files.append((sides[0], sides[1]))
    return files
