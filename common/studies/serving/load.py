"""Stage 8's server under load for minutes, with clients that send their requests byte by byte beside the others.

`make serving-load` prints a line every ten seconds, and ends with status 1 if an answer is wrong or missing, or if
the memory grows.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from ... import deploy
from ...check.deploy import TOLERANCE, scores_in_python
from ...console import say
from .recorder import STEPS, Client

CLIENTS = 8  # that send whole requests
LINE_SECONDS = 10.0
MOST_GROWTH = 10.0  # MiB, after the first tenth of the time


def hold_load(minutes: float, slow: int) -> int:
    """Runs the load and prints what it saw; 0 if every answer was right and the memory did not grow."""
    raise_file_limit()
    torch.manual_seed(0)
    errors: list[str] = []
    with deploy.Server(deploy.build_program(), deploy.build_package().path) as server:
        end = time.monotonic() + 60 * minutes
        with slow_clients(server.port, slow, errors), fast_clients(server.port, end, errors) as answers:
            memory = watch(server.process.pid, answers, end)
        if (status := server.stop()) != 0:
            errors.append(f"the server ended with status {status}")
    before, after = memory[len(memory) // 10], memory[-1]
    if after - before > MOST_GROWTH:
        errors.append("the memory grows")
    say(f"{sum(answers):,} right answers; memory {before:.1f} MiB, at the end {after:.1f} MiB")
    for error in errors:
        say(f"  {error}")
    return 1 if errors else 0


def raise_file_limit() -> None:
    """Each connection is an open file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def watch(pid: int, answers: list[int], end: float) -> list[float]:
    """The memory of the server in MiB, ten times between two lines that are printed."""
    memory, begin, line = [], time.monotonic(), LINE_SECONDS
    while time.monotonic() < end:
        time.sleep(min(LINE_SECONDS / 10, max(0.0, end - time.monotonic())))
        memory.append(resident_mib(pid))
        if time.monotonic() - begin >= line:
            say(f"  {line:.0f} s: {sum(answers):,} answers, {memory[-1]:.1f} MiB")
            line += LINE_SECONDS
    return memory


def resident_mib(pid: int) -> float:
    """The resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


@contextlib.contextmanager
def fast_clients(port: int, end: float, errors: list[str]) -> Iterator[list[int]]:
    """How many right answers each client has had so far; it stops at the first that is wrong or missing."""
    answers = [0] * CLIENTS
    sequences = torch.rand(CLIENTS, STEPS, 8)

    def ask(k: int) -> None:
        want = scores_in_python(sequences[k])
        with Client(port, sequences[k]) as client:
            while time.monotonic() < end:
                error = (torch.tensor(client.ask()["scores"]) - want).abs().max()
                assert error <= TOLERANCE, f"a score differs from Python's by {error:.1e}"
                answers[k] += 1

    threads = [start_thread(f"client {k}", errors, ask, k) for k in range(CLIENTS)]
    try:
        yield answers
    finally:
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def slow_clients(port: int, count: int, errors: list[str]) -> Iterator[None]:
    """Clients that send a byte in a second, and connect again when the server closes their connection."""
    request = b"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n" + b"[" * 1_000_000
    is_over = threading.Event()

    def send() -> None:
        progress = [k % 100 for k in range(count)]  # bytes sent: some clients are in the head, some in the body
        connections = [connect(port) for _ in progress]
        for connection, sent in zip(connections, progress, strict=True):
            connection.sendall(request[:sent])
        while not is_over.wait(1.0):
            for k, connection in enumerate(connections):
                try:
                    connection.sendall(request[progress[k] : progress[k] + 1])
                    progress[k] += 1
                except OSError:
                    connection.close()
                    connections[k], progress[k] = connect(port), 0
        for connection in connections:
            connection.close()

    thread = start_thread("the slow clients", errors, send)
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def connect(port: int) -> socket.socket:
    """A new connection to the server."""
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def start_thread(name: str, errors: list[str], function: Callable, *arguments: object) -> threading.Thread:
    """A thread that runs the function and adds its exception to the errors."""

    def run() -> None:
        try:
            function(*arguments)
        except (AssertionError, OSError) as error:
            errors.append(f"{name}: {error}")

    thread = threading.Thread(target=run)
    thread.start()
    return thread
