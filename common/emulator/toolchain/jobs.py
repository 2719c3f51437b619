"""One pool of jobs for the compilers of all processes of a user, so that builds side by side fit the machine.

A job is a locked file. The system releases the lock when the compiler that inherited it ends, however it ends. As a
program, `python jobs.py COMPILER ARGUMENTS...` runs a compiler as a job: for builds that start their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

MEMORY_OF_A_JOB = 3 * 2**29  # bytes: a source with torch's headers takes 1.2 GB
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
PAUSE = 0.05  # seconds between two looks for a free job


def max_jobs() -> int:
    """How many compilers may run at the same time: MAX_JOBS, or one a core if the memory suffices."""
    given = os.environ.get("MAX_JOBS", "")
    if given.isdigit() and int(given):
        return int(given)
    return max(1, min(count_cores(), find_memory() // MEMORY_OF_A_JOB))


def count_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_memory() -> int:
    """The bytes of memory of the machine, or of its container if that has less."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # there is none, or it is "max"
            found.append(int(Path(path).read_text()))
    return min(found)


@contextlib.contextmanager
def hold_job() -> Iterator[list[int]]:
    """Waits until fewer than `max_jobs` compilers run. Yields the file descriptors that the compiler must inherit."""
    folder = Path(tempfile.gettempdir()) / f"compilers-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        files = [(folder / str(number)).open("a") for number in range(max_jobs())]
    except OSError:  # a full or read-only disk: better too many compilers than none
        yield []
        return
    with contextlib.ExitStack() as stack:
        for file in files:
            stack.enter_context(file)
        yield [wait_for_lock(files)]


def wait_for_lock(files: list) -> int:
    """Locks one of these files as soon as one is free. Returns its file descriptor."""
    while True:
        for file in files:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file.fileno()
        time.sleep(PAUSE)


def launcher() -> list[str]:
    """The beginning of a command line that runs the compiler after it as a job."""
    return [sys.executable, "-S", "-E", str(Path(__file__).resolve())]


def write_wrapper(folder: Path, compiler: list[str]) -> Path:
    """Writes a program with the compiler's name that runs the compiler as a job. Returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    wrapper = folder / Path(compiler[0]).name
    command = shlex.join([*launcher(), *compiler])
    wrapper.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    wrapper.chmod(0o755)
    return wrapper


if __name__ == "__main__":
    with hold_job() as held:
        sys.exit(subprocess.run(sys.argv[1:], pass_fds=held).returncode)
