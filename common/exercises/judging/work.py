"""A learner's folder during a check: builds it, runs it in a separate process, counts what it does."""

from __future__ import annotations

import configparser
import contextlib
import json
import math
import secrets
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ... import paths
from ...cell.case import Case, fresh_seed
from ...emulator import Counted, build_program, demangle, fill_counts, read_counts
from ...errors import UserError
from ..exercise import Exercise
from ..failures import BuildFailure, Failure, require
from ..runner import process
from ..runner.builds import build_work_extension
from ..runner.process import LearnerError, Process
from ..runner.remote import RemoteFunction, RemoteModule
from ..variants.answers import ANSWERS, read_answers
from .kernels import enough_threads, few_reads, launched_once, on_current_stream, stored_once
from .source_text import strip_comments

if TYPE_CHECKING:
    from ..grading.isolation import Isolation

SMALL = (3, 5, 70)  # B, I, S: two full warps and a partial one
WIDE = (9, 5, 260)  # more units than the largest block has threads
RUNNER = Path(__file__).parents[1] / "runner"
OPERATORS = RUNNER / "operator_probe.py"  # for `work.beside`: registered operators
CALLS = RUNNER / "call_probe.py"  # and how autograd and other threads see a call
# Runs code that calls `tell`. Neither `tell` nor the nonce is in a module that the learner's code could inspect.
TELLER = """
import sys, types

def teller():
    from json import dumps
    from os import _exit, write
    nonce = sys.stdin.readline()

    def tell(value):
        write(1, f"\\n{nonce}{dumps(value)}\\n".encode())
        _exit(0)

    return tell

scope = {"__name__": "check", "tell": teller()}
code = compile(sys.argv.pop(1), "<check>", "exec")
sys.modules["__main__"] = types.ModuleType("__main__")
exec(code, scope)
"""
REPORT_SECONDS = 2  # for a program to report where it was when its time ran out


@dataclass
class Counts:
    """What was counted inside `with work.counting() as counted:`."""

    calls: dict[str, int] = field(default_factory=dict)  # of ATen functions, by name, including calls from C++
    saved: int = 0  # bytes of the storages that autograd keeps for backward
    kernels: Counted | None = None  # on the emulator: common/emulator/counts.py

    @property
    def all_calls(self) -> int:
        """How often ATen was called, not counting views."""
        views = ("view", "t", "slice", "split", "chunk", "narrow", "expand", "detach", "select", "unsqueeze", "alias",
                 "transpose", "as_strided", "_unsafe_view", "squeeze", "permute")  # fmt: skip
        return sum(number for name, number in self.calls.items() if name.partition(".")[0] not in views)


@dataclass(frozen=True)
class ProgramRun:
    """The result of running a program: its status (None if it ran out of time), its output, and its counts.

    `told` is the value that the check's own code reported; None if the program ended before that.
    """

    status: int | None
    output: str
    counted: Counted | None = None
    told: object = None


def keep_report(output: str, nonce: str) -> str:
    """A program's output, then the emulator's report. Only text after the nonce is accepted as a report."""
    printed, _, report = output.rpartition(nonce) if nonce in output else (output, "", "")
    own = (
        line for line in printed.strip().splitlines() if not line.startswith(("emulator: ", "the emulator found:"))
    )
    return "\n".join([*own, report.strip()]).strip()


class Work:
    """A learner's folder during a check. The learner's code runs in a separate process (process.py)."""

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
        self.start_early = True  # whether the learner's process starts before there is something to run in it
        self.process: Process | None = None
        self.variables: dict[str, str] = {}  # set in the environment of the process
        self.loaded = False
        self.built: Path | None = None
        self.printed = ""
        self.relied_on: dict[str, str] = {}  # files that must not change, each with the message if it did

    # A module ------------------------------------------------------------------------------------------------

    def cell(self, module: str = "lltm", name: str = "lltm") -> RemoteFunction:
        """The learner's cell, called like that of any stage: gradients go through the learner's backward."""
        return getattr(self.load(module), name)

    def load(self, module: str = "lltm") -> RemoteModule:
        """A module of the folder, such as `lltm`, or `_C` for the extension itself; C++ is built first."""
        if self.start_early:
            self.start()
        if not self.loaded:
            library = str(self.library()) if self.has_cpp else None
            self.start()
            try:
                self.process.ask("load", library=library)
            except LearnerError as error:  # an undefined symbol is only detected now
                said = demangle(str(error)).replace(f"{library}: ", "")
                raise BuildFailure(f"your code builds, but does not load: {said}") from None
            self.loaded = True
        return RemoteModule(lambda: self.process, module)

    def beside(self, file: Path) -> RemoteModule:
        """A module of the check that runs in the learner's process, for example to call opcheck there.

        It belongs to the learner's package: `from .lltm import lltm` imports the learner's cell.
        """
        self.load()
        self.process.ask("define", module=file.stem, text=file.read_text(encoding="utf-8"))
        return RemoteModule(lambda: self.process, file.stem)

    @property
    def has_cpp(self) -> bool:
        """Whether there is anything to build."""
        return (self.folder / "setup.py").exists()

    def library(self) -> Path:
        """The built extension. Raises `BuildFailure` with the compiler's messages."""
        if self.built is None:
            build = self.isolation.library if self.isolation else build_work_extension
            try:
                self.built = build(self.folder, self.target)
            except UserError as error:
                raise BuildFailure(str(error)) from None
        return self.built

    def start(self) -> None:
        """Starts the learner's process, which imports torch while the compiler runs."""
        if self.process is None:
            wrap = self.isolation.command if self.isolation else None
            self.process = Process(self.folder, self.seconds, wrap, **self.variables)

    def restart(self, **variables: str) -> None:
        """Starts a fresh process, without the state of the old one and with these variables in its environment."""
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
        """Counts calls of ATen, bytes saved for backward and memory accesses of kernels, in the learner's process."""
        counted = Counts()
        self.load()
        self.process.ask("count")
        yield counted
        found = self.process.ask("counted")
        counted.calls, counted.saved = found["calls"], found["saved"]
        if found["kernels"]:
            counted.kernels = Counted()
            fill_counts(counted.kernels, json.loads(found["kernels"]), self.folder)

    def by_kernels(self, most: tuple[int, int] = (5, 5)) -> None:
        """Raises `Failure` unless kernels compute the pointwise part of the cell, each element in one thread.

        A call then needs ATen only for allocations and matrix products: at most `most` calls in forward and in
        backward. The kernels must be launched on the current stream. With a batch of more units than a block can
        have threads, a launch has a thread for each, and no thread reads what others need.
        """
        case = self.case(*SMALL)
        unit = case.B * case.S * case.dtype.itemsize
        # new_h and new_cell; d_z and d_old_cell.
        for (name, counted), enough, units in zip(self.count_passes(case).items(), most, (2, 4), strict=True):
            calls = ", ".join(f"{number} {call}" for call, number in counted.calls.items())
            require(
                counted.all_calls <= enough,
                f"{name} calls ATen {counted.all_calls} times where {enough} are enough ({calls}): "
                "the pointwise part belongs in one kernel",
            )
            stored_once(counted.kernels, units * unit, name)
            launched_once(counted.kernels, name)
            enough_threads(counted.kernels, case.B * case.S, name)
            on_current_stream(counted.kernels, name)
        case = self.case(*WIDE)
        # z and old_cell; gates, new_cell and two gradients.
        for (name, counted), units in zip(self.count_passes(case).items(), (4, 6), strict=True):
            what = f"{name}, {case}"
            enough_threads(counted.kernels, case.B * case.S, what)
            few_reads(counted.kernels, units * case.B * case.S, what)

    def count_passes(self, case: Case) -> dict[str, Counts]:
        """What the cell's forward and backward call and launch; some upstream gradients are zero."""
        inputs, grads = list(case.inputs().values()), case.gradients()
        for grad in grads:
            grad[0] = 0  # zeros must be stored, too
        cell = self.cell()
        with self.counting() as forward:
            results = cell(*inputs)
        with self.counting() as back:
            torch.autograd.grad(results, inputs, grads)
        return {"forward": forward, "backward": back}

    def ours(self, folder: Path | None = None) -> Work:
        """A `Work` for a folder of the workbook, by default the stage's, to compare with. The caller closes it."""
        return Work(self.exercise, folder or self.exercise.source.folder, self.target, self.seconds, self.seed)

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

    # Programs ------------------------------------------------------------------------------------------------

    def program(self, file: str, *arguments: str, counting: bool = False, **variables: str) -> ProgramRun:
        """Builds a CUDA program with its own `main` for the emulator and runs it. The report follows its output."""
        build = paths.build_dir()
        build.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="program-", dir=build) as work:
            path = Path(work) / "counts.json"
            variables["EMULATOR_TIMEOUT"] = f"{max(1, self.seconds - REPORT_SECONDS):g}"
            variables |= {"EMULATOR_COUNTS": str(path)} if counting else {}
            variables["EMULATOR_NONCE"], nonce = "1", secrets.token_hex(16)
            try:
                if self.isolation:
                    isolated = self.isolation.program
                    status, output = isolated(file, arguments, self.folder, self.seconds, variables, path, nonce)
                else:
                    program = build_program(file, Path(work), paths.build_cache(), self.folder)
                    command = [str(program), *arguments]
                    status, output = process.run(command, self.folder, self.seconds, nonce, **variables)
            except UserError as error:
                raise BuildFailure(str(error)) from None
            is_counted = path.exists() and nonce in path.read_text(errors="replace")
            counted = read_counts(path, self.folder) if is_counted else None
            return ProgramRun(status, keep_report(output, nonce), counted)

    def python(self, *arguments: str, **variables: str) -> ProgramRun:
        """Runs `python ARGUMENTS` in the learner's folder."""
        if self.isolation:
            return ProgramRun(*self.isolation.python(arguments, self.folder, self.seconds, variables))
        return ProgramRun(*process.run([sys.executable, *arguments], self.folder, self.seconds, **variables))

    def observe(self, code: str, *arguments: str, **variables: str) -> ProgramRun:
        """Runs Python code of the check in the learner's folder. It ends by calling `tell(value)` with a JSON value.

        Output of the learner's code is not mistaken for the value, because that code does not know the nonce.
        """
        nonce, words = secrets.token_hex(16), ("-c", TELLER, code, *arguments)
        if self.isolation:
            status, output = self.isolation.python(words, self.folder, self.seconds, variables, stdin=nonce)
        else:
            command = [sys.executable, *words]
            status, output = process.run(command, self.folder, self.seconds, stdin=nonce, **variables)
        printed, _, value = output.partition(nonce)
        try:
            told = json.loads(value.partition("\n")[0])
        except (ValueError, RecursionError):  # it ended before, or wrote this itself
            told = None
        return ProgramRun(status, printed.strip(), told=told)

    # Answers -------------------------------------------------------------------------------------------------

    def text(self, file: str) -> str:
        """The text of a file of the folder. Raises `Failure` if it is missing."""
        try:
            return (self.folder / file).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise Failure(f"{file}: {error.strerror}. `make reset` makes a fresh one and keeps yours") from None

    def answers(self) -> dict[str, str]:
        """The learner's answers in answers.ini, by question. Raises `Failure` if one is missing."""
        try:
            found = read_answers(self.text(ANSWERS))
        except configparser.Error as error:
            raise Failure(f"{ANSWERS} cannot be read: {str(error).splitlines()[0]}") from None
        for question in self.exercise.questions:
            if not found.get(question.name.lower()):
                raise Failure(f"{question.name} has no answer yet: write one after its = sign in {ANSWERS}")
        return found

    def code(self, file: str, strings: bool = True) -> str:
        """A source file without comments and, with `strings=False`, with empty literals. Raises as `text` does."""
        return strip_comments(self.text(file), file, strings)

    def number(self, name: str, whole: bool = True) -> int | float:
        """The answer to a question. With `whole=False`, it may have decimals."""
        said = self.answers()[name.lower()]
        text = said.replace(",", "").replace("_", "")
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            number = math.nan
        require(abs(number) < math.inf, f"{name} = {said}: write a {'whole ' if whole else ''}number")
        return number
