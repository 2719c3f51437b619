"""Runs programs of a learner's folder: CUDA programs on the emulator, and Python.

`printed` is for checks of CUDA programs that take numbers as arguments and print numbers:

from common.exercises.judge import printed

def check(work):
    got, counted = printed(work, "scale.cu", [3, 70, x], (3, 70), "B=3, S=70")
"""

from __future__ import annotations

import json
import math
import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ... import paths
from ...emulator import Counted, build_program, read_counts
from ...errors import UserError
from ..failures import BuildFailure, Failure
from ..runner import process
from .folder import Folder

NO_LAUNCH = "no kernel was launched"
NO_PROBLEM = "no problem found"  # and no check was disabled
OUTPUT = 3  # lines that are shown of an output other than numbers
REPORT_SECONDS = 2  # for a program to report where it was when its time ran out
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


@dataclass(frozen=True)
class ProgramRun:
    """The result of running a program: its status (None if it ran out of time), its output, and its counts.

    `told` is the value that the check's own code reported; None if the program ended before that.
    """

    status: int | None
    output: str
    counted: Counted | None = None
    told: object = None


class Programs(Folder):
    """The programs of a learner's folder. Each run is a process of its own."""

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


def keep_report(output: str, nonce: str) -> str:
    """A program's output, then the emulator's report. Only text after the nonce is accepted as a report."""
    printed, _, report = output.rpartition(nonce) if nonce in output else (output, "", "")
    own = (
        line for line in printed.strip().splitlines() if not line.startswith(("emulator: ", "the emulator found:"))
    )
    return "\n".join([*own, report.strip()]).strip()


def printed(
    work: Programs,
    file: str,
    arguments: Sequence[object],
    shape: Sequence[int],
    case: str,
    dtype: torch.dtype = torch.float32,
    **variables: str,
) -> tuple[Tensor, Counted]:
    """The numbers that a program prints, as a tensor of this shape, and the memory accesses of its kernels.

    A tensor among the arguments is passed number by number. `case` describes the arguments in messages. Raises
    `Failure` with the emulator's report if it found a mistake, and if the output is not the expected numbers.
    """
    ran = work.program(file, *format_arguments(arguments), counting=True, **variables)
    text = require_clean_run(ran, case, variables.get("EMULATOR_CHECKS", ""))
    read, exact = (float, torch.float64) if dtype.is_floating_point else (int, torch.int64)
    try:
        numbers = torch.tensor([read(word) for word in text.split()], dtype=exact)
    except (ValueError, OverflowError, RuntimeError):
        lines = "\n".join(f"  | {line}" for line in text.splitlines()[:OUTPUT])
        raise Failure(f"{case}: the program prints something other than numbers:\n{lines}") from None
    if len(numbers) != math.prod(shape):
        raise Failure(f"{case}: the program prints {len(numbers)} numbers, expected {math.prod(shape)}")
    return numbers.to(dtype).view(*shape), ran.counted


def require_clean_run(ran: ProgramRun, case: str, checks: str = "") -> str:
    """What a program printed. Raises `Failure` unless its status is 0 and the emulator found nothing.

    `checks`: the value of EMULATOR_CHECKS that the program was run with, such as "-launch".
    """
    text, found, report = ran.output.partition("the emulator found:")
    if found:
        raise Failure(f"{case}: {found}{report}")
    text, mark, verdict = ran.output.rpartition("emulator: ")
    if not mark:
        text, verdict = ran.output, ""
    if ran.status is None:
        raise Failure(f"{case}: the program did not finish in time")
    if ran.status != 0:
        raise Failure(f"{case}: the program exits with status {ran.status}\n{text}".rstrip())
    if verdict.startswith(NO_LAUNCH):
        raise Failure(f"{case}: {NO_LAUNCH}: the results must come from a kernel")
    ending = NO_PROBLEM + f"; checks switched off: {checks[1:]}" * bool(checks)
    if not verdict.endswith(ending) or ran.counted is None:
        raise Failure(f"{case}: {verdict or 'the program ends early'}")
    return text


def format_arguments(arguments: Sequence[object]) -> list[str]:
    """Arguments for a command line."""
    return [
        str(number) for one in arguments for number in (one.flatten().tolist() if isinstance(one, Tensor) else [one])
    ]
