"""Runs a command and kills it with all its child processes if together they exceed the limits.

    python -I -S supervisor.py MEMORY PROCESSES FILE_SIZE CONTAINER COMMAND...

MEMORY and FILE_SIZE are bytes, PROCESSES counts threads too. CONTAINER is the name of the one that COMMAND runs, or
empty: its processes are no children of this one. The kernel has limits for one process, and for all of a user's. Only
a control group limits what a command has started, and an ordinary user can seldom make one. So this looks ten times a
second. It imports little, and of the standard library only: it starts with every process.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys

INTERVAL = 0.1  # seconds
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGKILL)
KEPT_FREE = 0.05  # of the machine's memory
OPEN_FILES = 512
MARK = "EXERCISE_PROCESS"  # as in ending.py, which would take too long to import here


def descendants(pid: int) -> tuple[list[int], int]:
    """A process with all its descendants, and the number of their threads."""
    pids, threads = [pid], 0
    for parent in pids:  # grows on the way
        try:
            tasks = os.listdir(f"/proc/{parent}/task")  # noqa: PTH208 (pathlib takes longer to import than this runs)
        except OSError:  # ended meanwhile
            continue
        threads += len(tasks)
        for task in tasks:
            pids += map(int, read_file(f"/proc/{parent}/task/{task}/children").split())
    return pids, threads


def private_memory(pid: int) -> int:
    """The private memory of a process in bytes, without mapped files, which processes share."""
    fields = dict(line.split(":", 1) for line in read_file(f"/proc/{pid}/status").split("\n") if ":" in line)
    return sum(int(fields.get(name, "0").split()[0]) for name in ("RssAnon", "RssShmem", "VmSwap")) * 1024


def proportional_memory(pid: int) -> int:
    """The same, with each page shared by forked processes divided by their number: exact, but slow to compute."""
    fields = dict(line.split(":", 1) for line in read_file(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
    if "Pss_Anon" not in fields:  # an old kernel, or the process has just ended
        return private_memory(pid)
    return sum(int(fields.get(name, "0").split()[0]) for name in ("Pss_Anon", "Pss_Shmem", "SwapPss")) * 1024


def read_meminfo(name: str) -> int:
    """A line of /proc/meminfo, in bytes."""
    lines = read_file("/proc/meminfo").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def read_file(path: str) -> str:
    """The text of a file; empty if it is gone."""
    try:
        with open(path, errors="replace") as file:  # noqa: PTH123 (a process may name itself in any bytes)
            return file.read()
    except OSError:
        return ""


def describe_excess(pid: int, most_memory: int, most_threads: int, shared_before: int) -> str | None:
    """The limit that a process and its descendants exceed, as a message; None if they exceed none."""
    pids, threads = descendants(pid)
    if threads > most_threads:
        return f"it started more than {most_threads} processes and threads"
    limit = f"more than {most_memory / 2**30:.1f} GB of memory"
    if sum(map(private_memory, pids)) > most_memory and sum(map(proportional_memory, pids)) > most_memory:
        return f"it took {limit}, in {len(pids)} processes"
    # Files in memory that no process has mapped belong to no process; only the machine's total shows them.
    if read_meminfo("Shmem:") - shared_before > most_memory:
        return f"it took {limit}, in memory-backed files"
    if read_meminfo("MemAvailable:") < KEPT_FREE * read_meminfo("MemTotal:"):
        return "the machine was about to run out of memory"
    return None


def forward_signal(pid: int, container: str) -> None:
    """Passes SIGUSR1 on to the command if its client forwards it, or else to bubblewrap's grandchild.

    Bubblewrap's child is the first process inside.
    """
    for descendant in [pid] if container else descendants(pid)[0][2:3]:
        with contextlib.suppress(OSError):
            os.kill(descendant, signal.SIGUSR1)


def remove_container_at_exit(client: str, container: str) -> None:
    """Starts a process that removes a container when this one ends, even by SIGKILL: a container outlives its client.

    It waits in its own session, without the mark by which all other processes of the check are found and killed.
    """
    ours_alone, _ = os.pipe()  # the other end closes when this process ends
    command = 'read _; "$0" kill "$1"; "$0" rm --force "$1"'
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        ["sh", "-c", command, client, container],
        stdin=ours_alone, stdout=nothing, stderr=nothing, env=environment, start_new_session=True,
    )  # fmt: skip


def apply_limits(file_size: int) -> None:
    """Runs in the new process: sets limits that the kernel enforces, and the lowest priorities."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # except in processes that wait for it
    os.nice(5)
    with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")


def main() -> int:
    """Runs the command and exits with its status, or with that of SIGKILL if it was killed."""
    most_memory, most_threads, file_size = map(int, sys.argv[1:4])
    container, command = sys.argv[4], sys.argv[5:]
    if container:
        remove_container_at_exit(command[0], container)
    process = subprocess.Popen(command, close_fds=False, preexec_fn=lambda: apply_limits(file_size))
    # The judge's signal that asks for the submission's position; it must be forwarded from here into the sandbox.
    signal.signal(signal.SIGUSR1, lambda *_: forward_signal(process.pid, container))
    parent, shared_before = os.getppid(), read_meminfo("Shmem:")
    while True:
        try:
            status = process.wait(INTERVAL)
            break
        except subprocess.TimeoutExpired:
            reason = describe_excess(process.pid, most_memory, most_threads, shared_before)
        if reason or os.getppid() != parent:
            process.kill()
            process.wait()
            if reason:
                os.write(2, f"\nsandbox: ended, {reason}\n".encode())  # whole, even if others write now
            status = 128 + signal.SIGKILL
            break
    if status - 128 in CRASHES:  # how bubblewrap says that a signal ended its command
        os.kill(os.getpid(), status - 128)
    return status


if __name__ == "__main__":
    sys.exit(main())
