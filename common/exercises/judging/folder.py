"""What every check has: the learner's folder, the target, the time limit and the seed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ...cell.case import Case, fresh_seed
from ..exercise import Exercise
from ..failures import Failure
from .source_text import strip_comments

if TYPE_CHECKING:
    from ..grading.isolation import Isolation


class Folder:
    """A learner's folder, and how to check it: on which target, with which seed, within which time."""

    def __init__(
        self,
        exercise: Exercise,
        folder: Path,
        target: str,
        seconds: float | None = None,
        seed: int | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self.exercise, self.folder, self.target, self.isolation = exercise, folder, target, isolation
        self.seconds = seconds or exercise.seconds
        self.seed = fresh_seed() if seed is None else seed
        self.relied_on: dict[str, str] = {}  # files that must not change, each with the message if it did

    def text(self, file: str) -> str:
        """The text of a file of the folder. Raises `Failure` if it is missing."""
        try:
            return (self.folder / file).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise Failure(f"{file}: {error.strerror}. `make reset` makes a fresh one and keeps yours") from None

    def code(self, file: str, strings: bool = True) -> str:
        """A source file without comments and, with `strings=False`, with empty literals. Raises as `text` does."""
        return strip_comments(self.text(file), file, strings)

    def case(self, B: int, I: int, S: int, **changes: object) -> Case:
        """A call of the cell with fresh numbers, on the device of this target."""
        return Case(B, I, S, **{"seed": self.seed, "device": self.device, **changes})

    @property
    def device(self) -> str:
        """The device of the tensors."""
        return "cuda" if self.target == "cuda" else "cpu"

    def numbers(self) -> torch.Generator:
        """A generator with this check's seed, for random values that a check needs."""
        return torch.Generator().manual_seed(self.seed)
