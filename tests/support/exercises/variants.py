"""The variants of an exercise: its starter, which fails helpfully, its solution, and wrong and right answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from common.exercises import variants, workspace
from common.exercises.checking import Verdict, check_folder
from common.exercises.exercise import EQUIVALENT_FILE, Exercise
from common.exercises.runner.builds import remove_builds
from common.exercises.variants import known
from common.paths import ROOT


class Variant(NamedTuple):
    """One variant of an exercise: "starter", "solution", "wrong/NAME", or "right/NAME"."""

    exercise: Exercise
    name: str

    def __str__(self) -> str:
        return f"{self.exercise.id}-{self.name}"

    @property
    def files(self) -> variants.Files:
        """All files in the learner's folder."""
        kind, _, name = self.name.partition("/")
        if name:
            return {"wrong": variants.wrong, "right": variants.right}[kind](self.exercise)[name]
        return {"starter": variants.starter, "solution": variants.solution}[kind](self.exercise)

    @property
    def sources(self) -> list[str]:
        """The files besides common/ that decide the verdict: the stage's, and the exercise's without its texts.

        Of known_answers.txt, only `text` does.
        """
        stage, folder = self.exercise.source.folder, self.exercise.folder
        found = [*stage.glob("*.py"), *(stage / "csrc").rglob("*"), *folder.rglob("*")]
        texts = [folder / name for name in ("README.md", "hints.md", EQUIVALENT_FILE, known.FILE)]
        files = (path for path in found if path.is_file() and "__pycache__" not in path.parts and path not in texts)
        return sorted(str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path) for path in files)

    @property
    def text(self) -> str:
        """What known_answers.txt says of this variant, and of the starter, which is given to the learner first."""
        answers = variants.known_answers(self.exercise)
        names = (name for name in ("starter", self.name) if name in answers)
        return "\n".join(known.format_answer(name, answers[name]) for name in dict.fromkeys(names))

    def judged(self) -> Verdict:
        """The verdict that a learner with these files gets. The build is not kept."""
        with tempfile.TemporaryDirectory(prefix="proof-") as folder:
            work = Path(folder).resolve() / self.exercise.name
            workspace.write_files(self.files, work)
            try:
                return check_folder(self.exercise, work, start_early=False)
            finally:
                remove_builds(work)


def variants_of(exercise: Exercise) -> list[Variant]:
    """All variants of an exercise, the starter first."""
    wrong, right = variants.wrong(exercise), variants.right(exercise)
    names = ["starter", "solution", *(f"wrong/{name}" for name in wrong), *(f"right/{name}" for name in right)]
    return [Variant(exercise, name) for name in names]
