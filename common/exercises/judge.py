"""What a check.py works with: `Work`, the learner's side (remote.py), and comparisons (comparing.py).

from common.exercises.judge import Failure, agree, cases, same

def check(work):
agree(work.cell(), cases(work))
"""

from __future__ import annotations

import configparser
import contextlib
import glob
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from .. import build, counts, emulate, pruning
from ..case import Case
from ..check import fresh_seed
from ..errors import UserError
from . import process
from .comparing import SIZES, SMALL, Failure, agree, cases, once_differentiable, refused, require, same, unchanged
from .confined import Confined
from .exercise import Exercise
from .process import LearnerError, Process, Stopped
from .remote import Function, Module
from .target import folder_for
from .variants import ANSWERS, read_answers

__all__ = [
    "OPERATORS", "SIZES", "SMALL", "BuildFailure", "Case", "Failure", "LearnerError", "Stopped", "Work",
    "agree", "cases", "once_differentiable", "refused", "require", "same", "unchanged",
]  # fmt: skip

OPERATORS = Path(__file__).with_name("operator_probe.py")  # for `work.beside`: registered operators
LAST_WORDS = 2  # seconds for a program to say where it was when its time was up
# Bytes under build/ that may be kept, by what they are.
MOST = {"exercises/*/*/*": 10**9, "headers/*": 3 * 10**9, "objects/*": 2 * 10**9}


@dataclass
class Counts:
    """What was counted between `with work.counting() as counted:` and its end."""

    calls: dict[str, int] = field(default_factory=dict)  # of ATen, by name, those from C++ too
    saved: int = 0  # bytes of the storages that autograd keeps for backward
    kernels: counts.Counted | None = None  # on the emulator: common/counts.py

    @property
    def all_calls(self) -> int:
        """How often ATen was called, views aside."""
        views = ("view", "t", "slice", "split", "chunk", "narrow", "expand", "detach", "select", "unsqueeze", "alias",
                 "transpose", "as_strided", "_unsafe_view", "squeeze", "permute")  # fmt: skip
        return sum(number for name, number in self.calls.items() if name.partition(".")[0] not in views)


@dataclass(frozen=True)
class Ran:
    """A program that was run: its status (None when its time was up), what it printed, and what it counted."""

    status: int | None
    output: str
    counted: counts.Counted | None = None


class Work:
    """A learner's folder while it is checked. The learner's code runs in a process of its own (process.py)."""

    def __init__(
        self,
        exercise: Exercise,
        folder: Path,
        target: str,
        seconds: float | None = None,
        seed: int | None = None,
        confined: Confined | None = None,
    ) -> None:
        self.exercise, self.folder, self.target, self.confined = exercise, folder, target, confined
        self.seconds = seconds or exercise.seconds
        self.seed = fresh_seed() if seed is None else seed
        self.ahead = True  # whether the learner's process starts before there is something to run in it
        self.process: Process | None = None
        self.variables: dict[str, str] = {}  # of the process's environment, beside ours
        self.loaded = False
        self.built: Path | None = None
        self.printed = ""

    # A module ------------------------------------------------------------------------------------------------

    def cell(self, module: str = "lltm", name: str = "lltm") -> Function:
        """The learner's cell, called like any stage's: gradients go through the learner's backward."""
        return getattr(self.load(module), name)

    def load(self, module: str = "lltm") -> Module:
        """A module of the folder, such as `lltm`, or `_C` for the extension itself; C++ is built first."""
        if self.ahead:
            self.start()
        if not self.loaded:
            library = str(self.library()) if self.has_cpp else None
            self.start()
            try:
                self.process.ask("load", library=library)
            except LearnerError as error:  # a symbol that nothing defines shows only now
                said = build.readable(str(error)).replace(f"{library}: ", "")
                raise BuildFailure(f"your code builds, but does not load: {said}") from None
            self.loaded = True
        return Module(self, module)

    def beside(self, file: Path) -> Module:
        """A module of ours in the learner's process: for what can be seen only there, such as what opcheck says.

        It is of the learner's package: `from .lltm import lltm` is the learner's.
        """
        self.load()
        self.process.ask("define", module=file.stem, text=file.read_text(encoding="utf-8"))
        return Module(self, file.stem)

    @property
    def has_cpp(self) -> bool:
        """Whether there is anything to build."""
        return (self.folder / "setup.py").exists()

    def library(self) -> Path:
        """The built extension. Raises `BuildFailure` with the compiler's words."""
        if self.built is None:
            place = place_of(self.folder) / folder_for(self.target)
            try:
                if self.confined:
                    self.built = self.confined.library(self.folder, self.target)
                    return self.built
                made = build.build_folder(self.folder, self.target, place, "your code", quick=True)
            except UserError as error:
                raise BuildFailure(str(error)) from None
            self.built = made.path
            if not made.cached:
                prune()
        return self.built

    def start(self) -> None:
        """Starts the learner's process, which imports torch while the compiler runs."""
        if self.process is None:
            confine = self.confined.command if self.confined else None
            self.process = Process(self.folder, self.seconds, confine, **self.variables)

    def restart(self, **variables: str) -> None:
        """A fresh process, with these in its environment: nothing that was remembered in the old one is there."""
        self.close()
        self.process, self.loaded, self.variables = None, False, variables

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the learner's process."""
        if self.process:
            self.process.close()
            self.printed = "\n".join(filter(None, [self.printed, self.process.printed.text]))

    @contextlib.contextmanager
    def counting(self) -> Iterator[Counts]:
        """Counts ATen's calls, bytes saved for backward and what kernels ask of memory, in the learner's process."""
        counted = Counts()
        self.load()
        self.process.ask("count")
        yield counted
        found = self.process.ask("counted")
        counted.calls, counted.saved = found["calls"], found["saved"]
        if found["kernels"]:
            counted.kernels = counts.Counted()
            counts.fill(counted.kernels, json.loads(found["kernels"]), self.folder)

    def by_kernels(self, most: tuple[int, int] = (5, 5)) -> None:
        """Raises `Failure` when a call of the cell asks ATen for more than allocations and matrix products.

        `most` is for forward and backward. Who computes the pointwise part with ATen has written no kernel.
        """
        case, cell = self.case(*SMALL), self.cell()
        inputs = list(case.inputs().values())
        with self.counting() as forward:
            results = cell(*inputs)
        with self.counting() as back:
            torch.autograd.grad(results, inputs, case.gradients())
        for name, counted, enough in zip(("forward", "backward"), (forward, back), most, strict=True):
            calls = ", ".join(f"{number} {call}" for call, number in counted.calls.items())
            require(
                counted.all_calls <= enough,
                f"{name} calls ATen {counted.all_calls} times where {enough} are enough ({calls}): "
                "the pointwise part belongs into one kernel",
            )

    def ours(self, folder: Path | None = None) -> Work:
        """The same for a folder of ours, the stage's without one: to measure, or to time beside. Close it after."""
        return Work(self.exercise, folder or self.exercise.source.folder, self.target, self.seconds, self.seed)

    def case(self, B: int, I: int, S: int, **changes: object) -> Case:
        """A call of the cell with fresh numbers, on the device of this target."""
        return Case(B, I, S, **{"seed": self.seed, "device": self.device, **changes})

    @property
    def device(self) -> str:
        """Where tensors live."""
        return "cuda" if self.target == "cuda" else "cpu"

    def numbers(self) -> torch.Generator:
        """A generator with this check's seed, for fresh values of one's own."""
        return torch.Generator().manual_seed(self.seed)

    # Programs ------------------------------------------------------------------------------------------------

    def program(self, file: str, *arguments: str, counting: bool = False, **variables: str) -> Ran:
        """Builds a CUDA program with its own `main` for the emulator and runs it. Its report follows its output."""
        with tempfile.TemporaryDirectory(prefix="program-", dir=_made(build.BUILD)) as work:
            path = Path(work) / "counts.json"
            variables["EMULATOR_TIMEOUT"] = f"{max(1, self.seconds - LAST_WORDS):g}"
            variables |= {"EMULATOR_COUNTS": str(path)} if counting else {}
            try:
                if self.confined:
                    ran = self.confined.program(file, arguments, self.folder, self.seconds, variables, path)
                else:
                    program = emulate.build(file, Path(work), self.folder)
                    ran = process.run([str(program), *arguments], self.folder, self.seconds, **variables)
            except UserError as error:
                raise BuildFailure(str(error)) from None
            return Ran(*ran, counts.read(path, self.folder) if path.exists() else None)

    def python(self, *arguments: str, **variables: str) -> Ran:
        """Runs `python ARGUMENTS` in the learner's folder."""
        if self.confined:
            return Ran(*self.confined.python(arguments, self.folder, self.seconds, variables))
        return Ran(*process.run([sys.executable, *arguments], self.folder, self.seconds, **variables))

    # Answers -------------------------------------------------------------------------------------------------

    def text(self, file: str) -> str:
        """A file of the folder. Raises `Failure` when it is not there."""
        try:
            return (self.folder / file).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise Failure(f"{file}: {error.strerror}. `make reset` gives you a fresh one and keeps yours") from None

    def answers(self) -> dict[str, str]:
        """What the learner wrote in answers.ini, by question. Raises `Failure` for one that is open."""
        try:
            found = read_answers(self.text(ANSWERS))
        except configparser.Error as error:
            raise Failure(f"{ANSWERS} cannot be read: {str(error).splitlines()[0]}") from None
        for question in self.exercise.questions:
            if not found.get(question.name.lower()):
                raise Failure(f"{question.name} has no answer yet: write one behind its = sign in {ANSWERS}")
        return found

    def number(self, name: str) -> int:
        """The answer to a question, which is a whole number."""
        said = self.answers()[name.lower()]
        try:
            return int(said.replace(",", "").replace("_", ""))
        except ValueError:
            raise Failure(f"{name} = {said}: a whole number is wanted") from None


class BuildFailure(Failure):
    """The learner's code does not build."""


def place_of(folder: Path) -> Path:
    """Where builds of a learner's folder are kept: its own, so that none waits for another, or finds its errors."""
    return build.BUILD / "exercises" / hashlib.sha256(str(folder).encode()).hexdigest()[:12]


def forget(folder: Path) -> None:
    """Removes the builds of a learner's folder; objects and headers, which others share, stay."""
    pruning.remove(place_of(folder))


def prune() -> None:
    """Keeps what exercises leave in build/ within MOST."""
    for pattern, most in MOST.items():
        # Not Path.glob: up to Python 3.12 it raises for a folder that another process has just removed.
        found = map(Path, glob.iglob(f"{glob.escape(str(build.BUILD))}/{pattern}"))  # noqa: PTH207
        pruning.prune((path for path in found if is_entry(path)), most)


def is_entry(path: Path) -> bool:
    """Whether this is something that was built, and not the lock or the log beside it."""
    return path.suffix == ".o" or (path.is_dir() and path.suffix == "" and not path.name.startswith("."))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
