"""The optimisations of stage 6, each of which can be left out of its sources.

Each has a file `stages/stage6_fused/ablation/NAME.diff`. Its first line describes the optimisation. The rest removes
it from the sources: a line `=== FILE`, then the hunks for that file, as exercises/variants/diffs.py reads them. The
diffs can be combined: applied in the order of `OPTIMISATIONS`, any of them may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import UserError
from ..exercises.variants.diffs import apply_diff
from ..stages import find_stage

FOLDER = find_stage(6).folder
DIFFS = FOLDER / "ablation"
# The devices on which an optimisation makes a difference.
OPTIMISATIONS = {
    "recomputed": ("cuda", "cpu"),
    "packs": ("cuda",),
    "units": ("cuda",),
    "bias": ("cuda", "cpu"),
    "small": ("cuda",),
    "joined": ("cuda", "cpu"),
    "autograd": ("cuda", "cpu"),
    "vectors": ("cpu",),
}


def describe(optimisation: str) -> str:
    """A description of an optimisation in one sentence."""
    return read_diff(optimisation).partition("\n")[0]


def read_diff(optimisation: str) -> str:
    """The text of an optimisation's diff."""
    return (DIFFS / f"{optimisation}.diff").read_text()


def sources_without(optimisations: Iterable[str]) -> dict[str, str]:
    """The texts of the stage's files without these optimisations, by their names in the stage's folder.

    Raises `UserError`, naming the diff, if a diff no longer applies to the sources.
    """
    optimisations = list(optimisations)
    csrc = (path for path in (FOLDER / "csrc").iterdir() if path.is_file())
    paths = [FOLDER / "__init__.py", FOLDER / "lltm.py", FOLDER / "setup.py", *sorted(csrc)]
    texts = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in paths}
    for optimisation in optimisations:
        _, *parts = re.split(r"^=== (.+)\n", read_diff(optimisation), flags=re.MULTILINE)
        for name, diff in zip(parts[::2], parts[1::2], strict=True):
            try:
                texts[name] = apply_diff(texts[name], diff)
            except (KeyError, ValueError) as error:
                shown, variant = f"{DIFFS.name}/{optimisation}.diff", f"without {', '.join(optimisations)}"
                raise UserError(f"{shown} does not fit {name} ({FOLDER.name} {variant}): {error}") from None
    return texts
