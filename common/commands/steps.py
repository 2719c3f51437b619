"""The steps of a lesson: the change from one stage to the next, a few files or one optimisation at a time.

A stage whose diff is too long to be read at once has a file `steps.ini`, with a section for each step in the order to
read them. `about` describes the step. `files` are the files that the step changes, and with `until`, it changes only
the part of one file before the first line that contains this text. (In the file of the stage before, this line may
have another text, `old_until`.) A step with the name of a diff in the folder `ablation` adds this optimisation to all
files that earlier steps have changed.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import UserError
from ..stages import Stage
from .optimisations import FOLDER as WITH_ABLATION
from .optimisations import OPTIMISATIONS, sources_without

MANIFEST = "steps.ini"
Texts = dict[str, str]  # of a stage's files, by name


@dataclass(frozen=True)
class Step:
    """One step of a lesson: a section of steps.ini."""

    name: str
    about: str
    files: tuple[str, ...]
    until: str = ""
    old_until: str = ""

    @property
    def optimisation(self) -> str:
        """The optimisation that this step adds, or an empty text."""
        return self.name if self.name in OPTIMISATIONS else ""


def read_steps(stage: Stage) -> list[Step]:
    """The steps from the stage before to this one; none if the whole diff is the lesson."""
    manifest = configparser.ConfigParser(interpolation=None)
    manifest.read(stage.folder / MANIFEST, encoding="utf-8")
    return [
        Step(name, row["about"], tuple(row.get("files", "").split()), row.get("until", ""), row.get("old_until", ""))
        for name, row in manifest.items()
        if name != configparser.DEFAULTSECT
    ]


def find_step(steps: Sequence[Step], name: str, stage: Stage) -> Step:
    """The step of this name. Raises `UserError`, with the names of all steps."""
    for step in steps:
        if step.name == name:
            return step
    names = f"the steps are {', '.join(step.name for step in steps)}" if steps else "its lesson has no steps"
    raise UserError(f"stage {stage.number} has no step {name!r}: {names}")


def texts_after_each(old: Stage, new: Stage, steps: Sequence[Step]) -> Iterator[Texts]:
    """The files of the old stage, and then the files after each step. The last are those of the new stage."""
    before, after = texts_of(old), texts_of(new)
    yield before
    texts = {name: text for name, text in before.items() if name in after}
    parts: dict[str, Step] = {}  # by the name of each file that has changed, the last step that changed it
    missing = [step.optimisation for step in steps if step.optimisation]
    for step in steps:
        parts |= dict.fromkeys(step.files, step)
        missing = [name for name in missing if name != step.optimisation]
        whole = after | texts_without(new, missing)
        texts = texts | {name: joined(before.get(name, ""), whole[name], part) for name, part in parts.items()}
        yield texts


def texts_of(stage: Stage) -> Texts:
    """All the code of a stage."""
    return {path.relative_to(stage.folder).as_posix(): path.read_text(encoding="utf-8") for path in stage.sources}


def texts_without(stage: Stage, missing: Sequence[str]) -> Texts:
    """The files that the optimisations change, without some of these; none for another stage than stage 6."""
    if stage.folder != WITH_ABLATION:
        return {}
    return sources_without(name for name in OPTIMISATIONS if name in missing)


def joined(old: str, new: str, step: Step) -> str:
    """A file of which a step has changed all, or the part before a line."""
    if not step.until:
        return new
    return new[: start_of_line(new, step.until)] + old[start_of_line(old, step.old_until or step.until) :]


def start_of_line(text: str, part: str) -> int:
    """Where the first line with this text begins; the end of `text` if there is none."""
    found = text.find(part)
    return len(text) if found < 0 else text.rfind("\n", 0, found) + 1
