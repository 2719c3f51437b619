"""Compiles an ordinary CUDA program with g++ and runs it under every check of the emulator: `make emulate FILE=x.cu`.

With COUNTS=1 a table follows: what each line of its kernels asked of memory.

The program gets no input, EMULATOR_TIMEOUT seconds (60), as much memory as the machine has, and may print a megabyte.
Its exit status is passed on; when it ends with 0, but a check failed, that is 66, and 124 when its time was up. All
this needs nothing but Python and g++.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

from . import counts
from .build import BUILD, compiler
from .emulator import compile as emulator
from .emulator.rewrite import rewrite
from .emulator.tokens import read
from .errors import UserError

MOST_OUTPUT = 1_000_000  # bytes, of stdout and of stderr
GRACE = 5  # seconds for a program to say where it was when its time was up
MOST_ERRORS = 5
FLAGS = (*emulator.STAGE_FLAGS, f"-fmax-errors={MOST_ERRORS}", "-fdiagnostics-show-caret")
ENDINGS = (".cu", ".cpp", ".cc", ".cxx")


def emulate(file: str, arguments: list[str]) -> int:
    """Builds and runs a program, or the tests of a folder that `make new` made; the exit status.

    Raises `UserError` for what cannot be built.
    """
    if file and (Path(file) / "setup.py").exists():
        from .new import emulated

        return emulated.emulate(Path(file), arguments)
    check(file)
    if not emulator.knows_cpp20(compiler()):
        raise UserError("no C++ compiler that knows C++20 (g++ 11 or newer); `make doctor` says what to install")
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="program-", dir=BUILD) as work:
        program = build(file, Path(work))
        if os.environ.get("COUNTS", "0") in ("", "0"):
            return run(program, arguments)
        return run_counted(program, arguments, Path(work) / "counts.json")


def run_counted(program: Path, arguments: list[str], path: Path) -> int:
    """Runs it as `run` does, and shows what its kernels asked of memory."""
    os.environ["EMULATOR_COUNTS"] = str(path)
    status = run(program, arguments)
    if path.exists():
        print(f"\n{counts.as_table(counts.read(path, Path.cwd()))}")
    return status


def check(file: str) -> None:
    """Raises `UserError` for what no compiler would take."""
    path = Path(file)
    if not file:
        raise UserError("which program? make emulate FILE=x.cu")
    if path.is_dir():
        raise UserError(f"{file} is a folder; name one CUDA program: make emulate FILE=x.cu")
    if not path.exists():
        hint = "; emulate takes one file" if " " in file else ""
        raise UserError(f"there is no file {file}{hint}")
    if path.suffix not in ENDINGS:
        raise UserError(f"{file} does not end in .cu: is it a CUDA program?")


def build(file: str, work: Path, here: Path | None = None) -> Path:
    """The program in `work`; `file` is relative to `here`, else to the current folder, and messages name it so.

    Raises `UserError` with the compiler's words when it does not build.
    """
    here = here or Path.cwd()
    source = Path(os.path.normpath(here / file))
    sources = emulator.included(source, [])
    root = Path(os.path.commonpath([path.parent for path in sources]))
    for path in sources:
        copy = work / "source" / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(rewrite(read(path, os.path.relpath(path, here))), encoding="utf-8")
    copies = work / "source"  # which the compiler is given by a path from here, where that is shorter
    named = os.path.relpath(root, here)
    maps = {here: ".", copies: named, os.path.relpath(copies, here): named}
    places = [f"-fdebug-prefix-map={path}={name}" for path, name in maps.items()]
    flags = [f"-I{emulator.INCLUDE}", *FLAGS, *places]
    job = emulator.Job(work / "source" / source.relative_to(root), flags, here)
    jobs = emulator.versioned([job, *emulator.runtime_jobs(work, "program")])
    made = emulator.compile_all(jobs, [], BUILD / "objects", work)
    for path, output in made:
        if path is None:
            raise UserError(f"{file} does not compile\n{output.rstrip()}")
    sys.stderr.write(made[0][1])  # warnings
    program = work / "program"
    command = [*emulator.compiler(), *(str(path) for path, _ in made), "-pthread", "-o", str(program)]
    linked = subprocess.run(command, capture_output=True, text=True)
    if linked.returncode:
        raise UserError(f"{file} does not link: {unresolved(linked.stderr)}")
    return program


def unresolved(output: str) -> str:
    """What a linker's output says is missing."""
    names = dict.fromkeys(line.rpartition("undefined reference to ")[2].strip("`'") for line in undefined(output))
    if "main" in names:
        return "it has no main()"
    return f"nothing defines {', '.join(names)}" if names else output.rstrip()


def undefined(output: str) -> list[str]:
    """The lines that name something undefined."""
    return [line for line in output.splitlines() if "undefined reference to" in line]


def run(program: Path, arguments: list[str]) -> int:
    """Runs it in a process group of its own, of which nothing is left at the end; shows its output and the report."""
    with tempfile.TemporaryFile() as report:
        environment = {**os.environ, "EMULATOR_REPORT": str(report.fileno())}
        process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            pass_fds=[report.fileno()],
            start_new_session=True,
            preexec_fn=limit_memory,
        )
        readers = [
            threading.Thread(target=show, args=pair, daemon=True)
            for pair in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
        ]
        for reader in readers:
            reader.start()
        in_time = wait(process)
        for reader in readers:
            reader.join(GRACE)
        report.seek(0)
        sys.stderr.write(report.read().decode(errors="replace"))
    if not in_time:
        print(f"emulator: the program has not ended after {seconds():g} seconds (EMULATOR_TIMEOUT)", file=sys.stderr)
        return 124
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        print(f"emulator: the program was ended by {name}", file=sys.stderr)
        return 128 - process.returncode
    return process.returncode


def wait(process: subprocess.Popen) -> bool:
    """Until the program ends, or its time is up; then ends all that it has started. Whether it ended by itself."""
    ended = threading.Event()

    def watch() -> None:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it keeps its number until the group is ended
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        return ended.wait(seconds() + GRACE if seconds() > 0 else None)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def seconds() -> float:
    """The limit on time; 0 for none."""
    try:
        return float(os.environ.get("EMULATOR_TIMEOUT", "60"))
    except ValueError:
        raise UserError(f"EMULATOR_TIMEOUT is no number: {os.environ['EMULATOR_TIMEOUT']!r}") from None


def limit_memory() -> None:
    """For the new process: no more memory than there is, so that a runaway program does not stop the machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def show(pipe: IO[bytes], to: IO[str]) -> None:
    """Passes on what comes through a pipe, up to a limit; what comes after is read and dropped."""
    left = MOST_OUTPUT
    while piece := os.read(pipe.fileno(), 1 << 16):
        if left > 0:
            to.write(piece[:left].decode(errors="replace"))
            if len(piece) > left:
                to.write(f"\nemulator: output cut after {MOST_OUTPUT} bytes\n")
            to.flush()
        left -= len(piece)
