"""`make diff-A-B`: shows what changes from one stage to another, which is the lesson of the stage."""

from __future__ import annotations

import subprocess
import sys

from .. import stages
from ..errors import UserError
from ..paths import ROOT
from ..stages import Stage

FIRST = ("lltm.py", "sequence.py", "setup.py")  # then the other modules, and csrc/


def show_diff(old: int, new: int) -> int:
    """Shows the code of two stages as one diff; the status is 0 whether they differ or not.

    Raises `UserError` for a stage without a cell.
    """
    sides = [stages.get_stage(old), stages.get_stage(new)]
    for stage in sides:
        if stage.kind not in ("cell", "sequence"):
            raise UserError(f"stage {stage.number} ({stage.title}) has no cell to compare; read its README")
    print(diff_text(*sides, colour=sys.stdout.isatty()), end="")
    return 0


def diff_text(old: Stage, new: Stage, colour: bool = False) -> str:
    """The diff in git's format. A new file is shown completely; of one that is gone, only the name is shown."""
    names = {path.relative_to(stage.folder).as_posix() for stage in (old, new) for path in stage.sources}
    options = ["--no-index", "--irreversible-delete", f"--color={'always' if colour else 'never'}"]
    parts = []
    for name in sorted(names, key=place_of):
        sides = [str((stage.folder / name).relative_to(ROOT)) for stage in (old, new)]
        sides = [side if (ROOT / side).is_file() else "/dev/null" for side in sides]
        parts.append(
            subprocess.run(["git", "diff", *options, *sides], cwd=ROOT, capture_output=True, text=True).stdout
        )
    return "".join(parts)


def place_of(name: str) -> tuple[int, str]:
    """The place of a file in the diff: first what a reader should see first."""
    order = FIRST.index(name) if name in FIRST else len(FIRST) + ("/" in name)
    return order, name
