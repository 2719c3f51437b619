"""Ends a learner's process and all processes that it started, and explains how it ended."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

MOST_MEMORY = 32 << 30  # bytes: no exercise needs as much, and a large machine would take long to fill more
EMPTY = 0.05  # seconds for which an environment must have been empty to count as such
MARK = "EXERCISE_PROCESS"  # a variable that all processes of one learner's process inherit
# prctl(PR_SET_PDEATHSIG, SIGKILL), which outlasts exec
TIE = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])"
CRASHES = {
    "SIGSEGV": "an access to an invalid address",
    "SIGBUS": "an access to an invalid address",
    "SIGABRT": "the program called abort()",
    "SIGFPE": "an integer was divided by zero",
    "SIGILL": "an instruction that this processor does not have",
}


def tie_to_parent(command: Sequence[str]) -> list[str]:
    """The command line of a program that ends when its parent ends, even if the parent is killed."""
    return [sys.executable, "-I", "-S", "-c", TIE, *command]


def finish(process: subprocess.Popen, seconds: float, mark: str = "") -> bool:
    """Waits until a process ends or runs out of time, then kills all that it started. Whether it ended by itself."""
    ended = threading.Event()

    def watch() -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(
                os.P_PID, process.pid, os.WEXITED | os.WNOWAIT
            )  # keeps its PID reserved until the group is ended
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        return ended.wait(seconds)
    finally:
        kill_tree(process, mark)


def has_ended(process: subprocess.Popen) -> bool:
    """Whether a process has ended; its PID stays reserved until `kill_tree`."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_tree(process: subprocess.Popen, mark: str = "") -> None:
    """Kills a process and all that it started; given its mark, also those that left its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):  # each round kills processes that were forked meanwhile
        left = find_marked(mark) if mark else []
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.01)


def find_marked(mark: str) -> list[int]:
    """The processes that inherited a mark."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if wanted in read_environment(place).split(b"\0"):
                found.append(int(place.name))
    return found


def read_environment(place: Path) -> bytes:
    """The environment of a process as the kernel stores it, given its folder in /proc; `OSError` if that is missing.

    While a process executes another program (execve), its environment reads as empty, and for a moment the memory
    map even says that it begins where it ends (see proc_pid_stat(5)). An empty one is therefore read again, for at
    most two seconds, until the map has said the same for `EMPTY` seconds: each program has another place for it.
    """
    begun = now = time.monotonic()
    since, known = begun, None
    while not (variables := (place / "environ").read_bytes()) and now < begun + 2:
        facts = (place / "stat").read_text().rpartition(")")[2].split()  # the third one and those after it
        memory, begin, end = (int(facts[number - 3]) for number in (23, 50, 51))
        now = time.monotonic()
        if (begin, end) != known:
            since, known = now, (begin, end)
        if not memory or (0 < begin == end and now > since + EMPTY):  # it has ended, or is a kernel thread; or empty
            break
        time.sleep(0.001)
    return variables


def count_oom_kills() -> int | None:
    """How often the kernel killed a process because memory ran out; None if it does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None


def describe_signal(number: int, killed_before: int | None) -> str:
    """The name of the signal that ended a process, and what it means.

    `killed_before` is `count_oom_kills()` from before the process was started.
    """
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    said = CRASHES.get(name)
    if name == "SIGKILL":
        killed = count_oom_kills()
        if killed is None or killed_before is None:
            said = "out of memory, or your code sends this signal to itself"
        elif killed > killed_before:
            said = "out of memory"
        else:
            said = "another process sent this signal; memory had not run out"
    return f"{name} ({said})" if said else name


def limit_memory(pid: int) -> None:
    """Limits the memory of a new process to that of this machine, or to `MOST_MEMORY` if it has more."""
    memory = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), MOST_MEMORY)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (memory, memory))
