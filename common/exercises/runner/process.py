"""The judge's side of the learner's process: requests with a time limit, and the reason if no answer comes."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from . import replies, wire
from .ending import MARK, count_oom_kills, describe_signal, finish, has_ended, kill_tree, limit_memory, tie_to_parent

SCRIPT = Path(__file__).with_name("learner.py")
MOST_OUTPUT = 100_000  # bytes that are kept of what a learner's code prints
MOST_LINES = 10  # of an exception's message
STACK = "Stack (most recent call first):"  # as faulthandler writes it
THROWN = "terminate called after throwing an instance of"  # as the C++ runtime writes it
MUCH_OUTPUT = 10_000_000  # from this many bytes on, printing may be the reason for a timeout
OF_THE_JUDGE = ("EMULATOR_CHECKS", "EMULATOR_DEVICE", "EMULATOR_COUNTS")
START_SECONDS = 60  # to import torch, on a slow disk
FLOOD = 50_000_000  # bytes that untrusted code may print
# Puts a command into a sandbox: `wrap(command, folder, environment)` gives the command to run (isolation.py).
WrapCommand = Callable[[Sequence[str], Path, dict[str, str]], Sequence[str]]


class LearnerError(RuntimeError):
    """An exception that the learner's code raised. `kind` is its type, `where` the lines: file, number, text."""

    def __init__(self, kind: str, message: str, where: list[list]) -> None:
        super().__init__(message)
        self.kind, self.where = kind, [tuple(place) for place in where]


class Stopped(Exception):
    """The process ended or did not answer in time. `kind` is "crash" or "time"; the message gives the reason."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Process:
    """A process for a learner's folder. It starts at once; its first request waits until torch is imported."""

    def __init__(self, folder: Path, seconds: float, wrap: WrapCommand | None = None, **variables: str) -> None:
        self.folder, self.seconds = folder, seconds
        self.mark, self.killed_before = uuid.uuid4().hex, count_oom_kills()
        given = environment() | variables
        command = [sys.executable, "-s", str(SCRIPT), str(folder)]
        self.process = subprocess.Popen(
            wrap(command, folder, given) if wrap else command,
            cwd=folder,
            env=given | {MARK: self.mark},
            stdin=subprocess.PIPE,  # requests
            stdout=subprocess.PIPE,  # answers; what the learner's code prints goes to stderr
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        limit_memory(self.process.pid)
        self.printed = OutputReader(self.process.stderr, FLOOD if wrap else None)
        self.used = 0.0  # seconds that its answers have taken
        self.is_new = True

    def ask(self, do: str, **arguments: object) -> object:
        """The answer of the process. Raises `LearnerError` for an exception there, `Stopped` if no answer comes."""
        start = time.monotonic()
        limit = self.seconds - self.used + (START_SECONDS if self.is_new else 0)
        deadline = start + max(0.0, limit)
        try:
            nonce = secrets.token_hex(wire.NONCE // 2).encode()  # an answer made in advance does not contain it
            send(self.process.stdin.fileno(), [nonce, *wire.pack({"do": do, "with": arguments})], deadline)
            reply = self._reply(nonce, deadline)
            replies.require_valid(do, reply)
            error, answer = None, reply.get("answer")
            if "error" in reply:
                error = LearnerError(**reply["error"])
        except TimeoutError:
            raise self._late() from None
        except (OSError, EOFError):
            raise self._ended() from None
        except Exception:  # the learner's code may have written anything there
            self.close()
            raise Stopped("crash", "your code wrote to a file that it did not open: the check's pipe") from None
        self.used += 0 if self.is_new else time.monotonic() - start
        self.is_new = False
        if self.printed.is_flood:
            raise self._flood()
        if error:
            raise error
        return answer

    def _reply(self, nonce: bytes, deadline: float) -> object:
        """The next frame. Nothing of it is read unless it begins with this nonce: ValueError."""

        def read(count: int) -> bytearray:
            return receive(self.process.stdout.fileno(), count, deadline, self.has_ended)

        if read(len(nonce)) != nonce:
            raise ValueError("not an answer to this request")
        return wire.unpack(read)

    def has_ended(self) -> bool:
        """Whether the process has ended; a process that it forked may still hold its pipes."""
        return has_ended(self.process)

    def _late(self) -> Stopped:
        """Makes the process report its position, then ends it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGUSR1)
        time.sleep(0.3)
        self.close()
        where, printed = self.printed.stack(self.folder), self.printed.total
        if printed > MUCH_OUTPUT:
            return Stopped("time", f"no answer within {self.seconds:g} s: your code prints endlessly"
                                   f" ({printed / 1e6:,.0f} MB so far){where}")  # fmt: skip
        return Stopped("time", f"no answer within {self.seconds:g} s: is there an endless loop?{where}")

    def _ended(self) -> Stopped:
        """The reason why no answer comes."""
        deadline = time.monotonic() + 2
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.02)
        closed = not self.has_ended()
        self.close()
        status = self.process.returncode
        if self.printed.is_flood:
            return self._flood()
        if closed or status == wire.PIPE_LOST:
            return Stopped("crash", "your code closed a file that it did not open: the check's pipe")
        if status < 0:
            what, where = describe_signal(-status, self.killed_before), self.printed.stack(self.folder)
            return Stopped("crash", f"your code crashed: {what}{where}{self.printed.uncaught}")
        return Stopped("crash", f"your code ended the process with status {status}: remove the call of exit()")

    def _flood(self) -> Stopped:
        """Ends a process that printed too much."""
        self.close()
        return Stopped("crash", f"your code printed more than {FLOOD // 10**6} MB: is there an endless loop?")

    def close(self) -> None:
        """Ends the process and all that it started."""
        if self.process.returncode is None:
            kill_tree(self.process, self.mark)
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()
        self.printed.thread.join(2)


class OutputReader:
    """Reads what a process prints and keeps it up to a limit; stops reading after `most` bytes."""

    def __init__(self, pipe, most: int | None = None) -> None:
        self.pipe, self.most, self.data, self.total = pipe, most, bytearray(), 0
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        while piece := os.read(self.pipe.fileno(), 1 << 16):
            self.total += len(piece)
            self.data += piece
            # The end of the output says where a crash happened, so the middle is dropped.
            if len(self.data) > 2 * MOST_OUTPUT:
                del self.data[MOST_OUTPUT // 2 : -MOST_OUTPUT // 2]
            if self.is_flood:
                break
        self.pipe.close()

    @property
    def is_flood(self) -> bool:
        """Whether the process printed more than it is allowed to."""
        return self.most is not None and self.total > self.most

    @property
    def text(self) -> str:
        """What was printed, without the stacks of faulthandler."""
        text = self.data.decode(errors="replace")
        for mark in ("Fatal Python error:", STACK, THROWN):
            text = text.partition(mark)[0]
        more = self.total - len(self.data)
        return text.strip() + (f"\n(and {more:,} bytes more)" if more else "")

    @property
    def uncaught(self) -> str:
        """The message of an uncaught C++ exception, for example while operators are registered; usually empty."""
        said = self.data.decode(errors="replace").partition(THROWN)[2].partition("what():")[2]
        said = said.partition("\nException raised from ")[0].partition("\nFatal Python error:")[0]
        return "".join(f"\n  {line.strip()}" for line in said.strip().splitlines()[:MOST_LINES])

    def stack(self, folder: Path) -> str:
        """The position in the learner's code, as reported by faulthandler; empty if it reports none."""
        text = self.data.decode(errors="replace")
        rows = [row.strip() for row in text.rpartition(STACK)[2].splitlines()]
        for row in rows:
            if str(folder) in row and row.startswith("File "):
                file, _, rest = row.removeprefix('File "').partition('", line ')
                number, _, name = rest.partition(" in ")
                return f"\n  {os.path.relpath(file, folder)}:{number}, in {name}"
        return ""


def run(
    command: Sequence[str], folder: Path, seconds: float, stdin: str = "", **variables: str
) -> tuple[int | None, str]:
    """Runs a program of the learner in `folder`: its status (None if it ran out of time) and its output."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        tie_to_parent(command),
        cwd=folder,
        env=environment() | {MARK: mark} | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    limit_memory(process.pid)
    write_stdin(process, stdin)
    printed = OutputReader(process.stdout)
    in_time = finish(process, seconds, mark)
    printed.thread.join(2)
    return (process.returncode if in_time else None), printed.text


def write_stdin(process: subprocess.Popen, text: str) -> None:
    """Gives a process the text as all of its input: from a pipe, so that it can be read only once."""
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(text.encode())


def environment() -> dict[str, str]:
    """The environment of a learner's process: enough to find programs, and no byte code beside the sources.

    Only a check can set what the emulator checks; the learner's code cannot change it. A relative folder in
    PYTHONPATH would be the learner's, where a file such as signal.py would replace the module of Python.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in OF_THE_JUDGE}
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    inherited["PYTHONPATH"] = os.pathsep.join(one for one in folders if Path(one).is_absolute())
    fixed = {"EMULATOR_FIXED": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "MALLOC_PERTURB_": "170"}
    return inherited | fixed


def send(pipe: int, parts: Sequence[bytes], deadline: float) -> None:
    """Writes all parts; raises TimeoutError if they are not read in time."""
    os.set_blocking(pipe, False)
    for part in parts:
        left = memoryview(part)
        while left:
            if not select.select([], [pipe], [], max(0.0, deadline - time.monotonic()))[1]:
                raise TimeoutError
            left = left[os.write(pipe, left) :]


def receive(pipe: int, count: int, deadline: float, has_ended: Callable[[], bool]) -> bytearray:
    """Reads exactly that many bytes; TimeoutError if they do not come in time, EOFError if the writer has ended."""
    data = bytearray()
    while len(data) < count:
        left = deadline - time.monotonic()
        was_there = not has_ended()
        if select.select([pipe], [], [], min(0.2, max(0.0, left)))[0]:
            piece = os.read(pipe, min(count - len(data), 1 << 20))
        elif was_there and left > 0:
            continue
        elif was_there:
            raise TimeoutError
        else:
            piece = b""
        if not piece:
            raise EOFError
        data += piece
    return data
