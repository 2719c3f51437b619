"""Builds ordinary CUDA programs with g++ and runs them under every check of the emulator.

A program gets no input, EMULATOR_TIMEOUT seconds (60 by default) and as much memory as the machine has, and may print
one megabyte. Its exit status is passed on, with two exceptions: 66 if the program ends with 0 but a check failed, and
124 if it exceeds the time limit. All this needs only Python and g++.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from .compilation import (
    INCLUDE_DIR,
    KERNEL_FLAGS,
    add_versions,
    is_usable,
    optimised_flags,
    rewrite_sources,
    runtime_jobs,
    why_unavailable,
)
from .counting import ANYWHERE, read_counts
from .errors import UserError
from .toolchain.cache import Cache, default_cache, prune_cache
from .toolchain.compiler import compiler_command
from .toolchain.hints import find_hints
from .toolchain.libraries import find_libraries, library_dirs, library_jobs
from .toolchain.messages import drop_misplaced_carets
from .toolchain.objects import Job, compile_objects

MOST_OUTPUT = 1_000_000  # bytes, of stdout and of stderr
GRACE = 5  # seconds for a program to report where it was when the time limit stopped it
MOST_ERRORS = 5
FLAGS = (*KERNEL_FLAGS, f"-fmax-errors={MOST_ERRORS}", "-fdiagnostics-show-caret")
STANDARDS = ("c++17", "c++20")  # versions of C++ for programs
STANDARD = STANDARDS[0]  # nvcc's default
RUNTIME_MACROS = ("EMULATOR_ALL_CORES",)  # kernels run on all cores (see qualifiers.h)
SUFFIXES = (".cu", ".cpp", ".cc", ".cxx")


def emulate(
    sources: Sequence[str],
    arguments: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    macros: Sequence[str] = (),
    counts: bool = False,
    cache: Cache | None = None,
    standard: str = STANDARD,
    checks: bool = True,
    compiler_flags: Sequence[str] = (),
) -> int:
    """Builds a program from its sources and runs it with the arguments; returns its exit status.

    A macro has the form `N=8`; `standard` is one of STANDARDS; `compiler_flags` are passed to g++ when it compiles
    a source and when it links the program. With `counts`, a table at the end shows how each line of the kernels
    accesses memory. Without `checks`, kernels run on all cores, about ten times as fast. Objects are kept in `cache`,
    or in the user's cache. Raises `UserError` for a program that does not build.
    """
    check_sources(sources)
    if reason := why_unavailable():
        raise UserError(reason)
    cache, user_cache = cache or default_cache(), cache is None
    cache.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="program-", dir=cache.folder) as work:
        program = build_program(
            *(sources, Path(work), cache),
            include_dirs=include_dirs,
            macros=macros,
            standard=standard,
            compiler_flags=compiler_flags,
        )
        if user_cache:
            prune_cache(cache)
        variables = {} if checks else {"EMULATOR_CHECKS": "none"}
        if not counts:
            return run_program(program, arguments, **variables)
        path = Path(work) / "counts.json"
        status = run_program(program, arguments, **variables, EMULATOR_COUNTS=str(path))
        if path.exists():
            print(f"\n{read_counts(path, Path.cwd(), within=ANYWHERE)}")
        return status


def check_sources(sources: Sequence[str]) -> None:
    """Raises `UserError` for a file that cannot be a source of a program, and for one that is named twice."""
    seen: set[Path] = set()
    for source in sources:
        path = Path(source)
        if path.is_dir():
            raise UserError(f"{source} is a folder, not a CUDA program")
        if not path.exists():
            raise UserError(f"there is no file {source}")
        if path.suffix not in SUFFIXES:
            raise UserError(f"{source} does not end in .cu: is it a CUDA program?")
        if path.resolve() in seen:
            raise UserError(f"{source} is given twice: all that it defines would be there twice")
        seen.add(path.resolve())


def build_program(
    sources: str | Sequence[str],
    work: Path,
    cache: Cache,
    here: Path | None = None,
    include_dirs: Sequence[str] = (),
    macros: Sequence[str] = (),
    standard: str = STANDARD,
    compiler_flags: Sequence[str] = (),
) -> Path:
    """Builds a program from one or several sources in the folder `work`; returns its path.

    Sources and include folders are relative to `here`, or to the current folder, and messages use these names. Raises
    `UserError` with the compiler's errors if the program does not build.
    """
    names, here = [sources] if isinstance(sources, str) else sources, here or Path.cwd()
    work = work.absolute()  # the compiler runs in `here`
    paths = [Path(os.path.normpath(here / name)) for name in names]
    dirs = [path for path in (Path(os.path.normpath(here / name)) for name in include_dirs) if is_usable(path)]
    copies = rewrite_sources(paths, dirs, here, work / "source", macros=macros)
    libraries = find_libraries(paths, dirs)
    own_dirs = [*(copies.copy_of(path) for path in dirs), *library_dirs(libraries)]
    include = [f"-I{path}" for path in (*own_dirs, INCLUDE_DIR, *dirs)]  # a program's own headers come first
    defined = [f"-D{macro}" for macro in (*macros, *RUNTIME_MACROS)]
    flags = [*include, *defined, f"-std={standard}", *FLAGS, *compiler_flags, *copies.prefix_maps]
    jobs = [Job(copies.copy_of(path), flags, here) for path in paths]
    jobs += library_jobs(libraries, optimised_flags(RUNTIME_MACROS))
    jobs += runtime_jobs(work, "program", macros=RUNTIME_MACROS)
    compiled = compile_objects(add_versions(jobs), own_dirs, cache, work)
    for k, (path, output) in enumerate(compiled):
        if path is None:
            name = names[k] if k < len(names) else "the emulator's runtime"
            errors = drop_misplaced_carets(output).rstrip()
            raise UserError(f"{name} does not compile\n{errors}\n{find_hints(output)}".rstrip())
    sys.stderr.write("".join(output for _, output in compiled[: len(paths)]))  # warnings
    program = work / "program"
    objects = [str(path) for path, _ in reversed(compiled)]  # the runtime comes first, so its constructors run first
    command = [*compiler_command(), *objects, *compiler_flags, "-pthread", "-o", str(program)]
    linked = subprocess.run(command, capture_output=True, text=True, cwd=here)
    if linked.returncode:
        name = names[0] if len(names) == 1 else "the program"
        raise UserError(f"{name} does not link: {_describe_link_error(linked.stderr)}")
    return program


def _describe_link_error(output: str) -> str:
    """The missing names in a linker's output, or the whole output for other errors."""
    lines = [line for line in output.splitlines() if "undefined reference to" in line]
    names = dict.fromkeys(line.rpartition("undefined reference to ")[2].strip("`'") for line in lines)
    if "main" in names:
        return "it has no main()"
    return f"nothing defines {', '.join(names)}" if names else output.rstrip()


def run_program(program: Path, arguments: Sequence[str] = (), **variables: str) -> int:
    """Runs a program that `build_program` built, shows its output and the report, and returns its exit status.

    `variables` are added to its environment. It runs in its own process group, and all its processes end with it.
    """
    with tempfile.TemporaryFile() as report:
        process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**progress_setting(), **os.environ, **variables, "EMULATOR_REPORT": str(report.fileno())},
            pass_fds=[report.fileno()],
            start_new_session=True,
            preexec_fn=limit_memory,
        )
        readers = [
            threading.Thread(target=forward_output, args=pair, daemon=True)
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
        seconds = f"{time_limit():g} seconds (EMULATOR_TIMEOUT)"
        print(f"emulator: the program has not ended after {seconds}", file=sys.stderr)
        return 124
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        why = ": perhaps the machine has no memory left" if name == "SIGKILL" else ""
        print(f"emulator: the program was killed by signal {name}{why}", file=sys.stderr)
        return 128 - process.returncode
    return process.returncode


def progress_setting() -> dict[str, str]:
    """The setting that lets the program show its progress on our stderr: its own is a pipe."""
    return {"EMULATOR_PROGRESS": "1"} if sys.stderr.isatty() else {}


def wait(process: subprocess.Popen) -> bool:
    """Waits for the end of the program or the time limit, then ends all its processes; whether it ended in time."""
    ended = threading.Event()

    def watch() -> None:
        os.waitid(
            os.P_PID, process.pid, os.WEXITED | os.WNOWAIT
        )  # the process id stays reserved until the whole group has ended
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        return ended.wait(time_limit() + GRACE if time_limit() > 0 else None)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def time_limit() -> float:
    """The time limit of a program in seconds; 0 for no limit."""
    try:
        return float(os.environ.get("EMULATOR_TIMEOUT", "60"))
    except ValueError:
        raise UserError(f"EMULATOR_TIMEOUT is not a number: {os.environ['EMULATOR_TIMEOUT']!r}") from None


def limit_memory() -> None:
    """Limits the memory of the new process to that of the machine, so that a runaway program cannot block it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def forward_output(pipe: IO[bytes], to: IO[str]) -> None:
    """Forwards the output from a pipe, up to MOST_OUTPUT bytes. The rest is read and dropped."""
    left = MOST_OUTPUT
    while piece := os.read(pipe.fileno(), 1 << 16):
        if left > 0:
            to.write(piece[:left].decode(errors="replace"))
            if len(piece) > left:
                to.write(f"\nemulator: output cut after {MOST_OUTPUT} bytes\n")
            to.flush()
        left -= len(piece)
