"""A learner's extension or module during a check: builds it, runs it in a separate process, counts what it does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...emulator import Counted, demangle, fill_counts
from ...errors import UserError
from ..failures import BuildFailure
from ..runner.builds import build_work_extension
from ..runner.process import LearnerError, Process
from ..runner.remote import RemoteModule
from .folder import Folder


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


class Extension(Folder):
    """The modules of a learner's folder. They run in a process of their own (runner/process.py)."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.start_early = True  # whether the learner's process starts before there is something to run in it
        self.process: Process | None = None
        self.variables: dict[str, str] = {}  # set in the environment of the process
        self.loaded = False
        self.built: Path | None = None
        self.printed = ""

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

    def __enter__(self) -> Extension:
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
