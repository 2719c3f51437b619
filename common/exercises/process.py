"""The judge's end of the learner's process: requests with a time limit, and what became of it if no answer comes."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import wire

SCRIPT = Path(__file__).with_name("learner.py")
MOST_OUTPUT = 100_000  # bytes that are kept of what a learner's code prints
STACK = "Stack (most recent call first):"  # as faulthandler writes it
START_SECONDS = 60  # to import torch, on a slow disk
# Puts a command into a sandbox: `confine(command, readable folder)` gives the command to run. See common/grading.
Confine = Callable[[Sequence[str], Path], Sequence[str]]


class LearnerError(RuntimeError):
    """An exception that the learner's code raised. `kind` is its type, `where` the lines: file, number, text."""

    def __init__(self, kind: str, message: str, where: list[list]) -> None:
        super().__init__(message)
        self.kind, self.where = kind, [tuple(place) for place in where]


class Stopped(Exception):
    """The process ended or did not answer. `kind` is "crash" or "time"; the text says more."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Process:
    """A process for a learner's folder. It starts at once; what it is asked first waits until torch is imported."""

    def __init__(self, folder: Path, seconds: float, confine: Confine | None = None, **variables: str) -> None:
        self.folder, self.seconds = folder, seconds
        to_read, self.to_write = os.pipe()
        self.from_read, to_answer = os.pipe()
        command = [sys.executable, "-s", str(SCRIPT), str(folder), str(to_read), str(to_answer)]
        self.process = subprocess.Popen(
            confine(command, folder) if confine else command,
            cwd=folder,
            env=environment() | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[to_read, to_answer],
            start_new_session=True,
            preexec_fn=limit_memory,
        )
        os.close(to_read)
        os.close(to_answer)
        self.printed = Printed(self.process.stdout)
        self.used = 0.0  # seconds that its answers have taken
        self.is_new = True

    def ask(self, do: str, **arguments: object) -> object:
        """What the process answers. Raises `LearnerError` for an exception there, `Stopped` if no answer comes."""
        begun = time.monotonic()
        limit = self.seconds - self.used + (START_SECONDS if self.is_new else 0)
        deadline = begun + max(0.0, limit)
        try:
            send(self.to_write, wire.pack({"do": do, "with": arguments}), deadline)
            answer = wire.unpack(lambda count: receive(self.from_read, count, deadline))
        except TimeoutError:
            raise self._late() from None
        except (OSError, EOFError):
            raise self._ended() from None
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            self.close()
            raise Stopped("crash", f"your code wrote to the judge's pipe ({error})") from None
        self.used += 0 if self.is_new else time.monotonic() - begun
        self.is_new = False
        if not isinstance(answer, dict) or not ("answer" in answer or "error" in answer):
            raise Stopped("crash", "your code wrote to the judge's pipe")
        if "error" in answer:
            raise LearnerError(**answer["error"])
        return answer["answer"]

    def _late(self) -> Stopped:
        """Asks where it is, and ends it."""
        os.killpg(self.process.pid, signal.SIGUSR1)
        time.sleep(0.3)
        self.close()
        where = self.printed.stack(self.folder)
        return Stopped("time", f"no answer within {self.seconds:g} s: an endless loop?{where}")

    def _ended(self) -> Stopped:
        """Why nothing comes any more."""
        try:
            status = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.close()
            return Stopped("crash", "your code closed the judge's pipe")
        self.close()
        if status < 0:
            name = signal.Signals(-status).name
            meaning = {"SIGSEGV": "memory that is not there was touched", "SIGABRT": "the program gave up"}
            meaning |= {"SIGFPE": "a whole number was divided by zero", "SIGKILL": "the memory did not suffice"}
            said = f" ({meaning[name]})" if name in meaning else ""
            return Stopped("crash", f"your code crashed: {name}{said}{self.printed.stack(self.folder)}")
        return Stopped("crash", f"your code ended the process with status {status}: exit() has no place in it")

    def close(self) -> None:
        """Ends the process and all that it started."""
        if self.process.returncode is None or self.to_write >= 0:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for end in (self.to_write, self.from_read):
            if end >= 0:
                os.close(end)
        self.to_write = self.from_read = -1
        self.printed.thread.join(2)


class Printed:
    """What a process prints, read as it comes and kept up to a limit."""

    def __init__(self, pipe) -> None:
        self.pipe, self.data, self.dropped = pipe, bytearray(), 0
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        while piece := os.read(self.pipe.fileno(), 1 << 16):
            room = MOST_OUTPUT - len(self.data)
            # The end of it says where a crash was, so room is made by dropping the middle.
            if room < len(piece):
                self.dropped += len(piece) - max(room, 0)
                del self.data[MOST_OUTPUT // 2 : MOST_OUTPUT // 2 + len(piece) - max(room, 0)]
            self.data += piece[-MOST_OUTPUT // 2 :]
        self.pipe.close()

    @property
    def text(self) -> str:
        """What was printed, without the stacks of faulthandler."""
        text = self.data.decode(errors="replace")
        for mark in ("Fatal Python error:", STACK):
            text = text.partition(mark)[0]
        return text.strip() + (f"\n(and {self.dropped:,} bytes more)" if self.dropped else "")

    def stack(self, folder: Path) -> str:
        """Where the learner's code was, as faulthandler wrote it; empty when it does not say."""
        text = self.data.decode(errors="replace")
        rows = [row.strip() for row in text.rpartition(STACK)[2].splitlines()]
        for row in rows:
            if str(folder) in row and row.startswith("File "):
                file, _, rest = row.removeprefix('File "').partition('", line ')
                number, _, name = rest.partition(" in ")
                return f"\n  {os.path.relpath(file, folder)}:{number}, in {name}"
        return ""


def run(
    command: Sequence[str], folder: Path, seconds: float, confine: Confine | None = None, **variables: str
) -> tuple[int | None, str]:
    """Runs a program of the learner's in `folder`: its status, None when its time was up, and what it printed."""
    process = subprocess.Popen(
        confine(command, folder) if confine else command,
        cwd=folder,
        env=environment() | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=limit_memory,
    )
    printed = Printed(process.stdout)
    ended = threading.Event()

    def watch() -> None:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # keeps its number until the group is ended
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    in_time = ended.wait(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    status = process.wait()
    printed.thread.join(2)
    return (status if in_time else None), printed.text


def environment() -> dict[str, str]:
    """What a learner's process inherits: enough to find programs, and no byte code beside the sources."""
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "MALLOC_PERTURB_": "170"}


def limit_memory() -> None:
    """For the new process: no more memory than there is."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def send(pipe: int, parts: Sequence[bytes], deadline: float) -> None:
    """Writes all of it; TimeoutError when nobody reads."""
    os.set_blocking(pipe, False)
    for part in parts:
        left = memoryview(part)
        while left:
            if not select.select([], [pipe], [], max(0.0, deadline - time.monotonic()))[1]:
                raise TimeoutError
            left = left[os.write(pipe, left) :]


def receive(pipe: int, count: int, deadline: float) -> bytes:
    """Exactly that many bytes; TimeoutError when they do not come, EOFError when nobody will write them."""
    data = bytearray()
    while len(data) < count:
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        piece = os.read(pipe, min(count - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
