"""Stage 8's server against the same model in Python: the time of a request, and requests in a second.

`make serving` records docs/results/studies/serving.json, and on a machine with a GPU serving_cuda.json, too. All
implementations are measured in one run, one after the other.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from ... import deploy
from ...console import say, step
from ...paths import ROOT
from ...results import records, sources
from ...stages import get_stage
from . import STUDY

SECONDS = 3.0  # for each measurement, after a warm-up
WARM_UP = 1.0
CLIENTS = (1, 16)
STEPS = 8
EAGER, COMPILED, PACKAGED = "call: eager", "call: torch.compile", "call: package, in Python"
PYTHON_SERVER, PROGRAM, DELAYED = "server in Python", "lltm_serve", "lltm_serve, batches wait 2 ms"


def measure_serving() -> int:
    """Records the times on the CPU and, if there is one, on a GPU, and prints the table; always 0."""
    from .table import serving_table

    status = record_serving("cpu")
    if torch.cuda.is_available():
        status |= record_serving("cuda")
    say(serving_table())
    return status


def record_serving(device: str = "cpu") -> int:
    """Measures everything with the model on a device and writes the record of the device; always 0."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # as in both servers: the clients need the other cores
    sequence = torch.rand(STEPS, 8)
    deployed = deploy.build_package(device)
    rows = [measure_call(name, call, deployed, sequence) for name, call in calls(deployed).items()]
    with python_server(device) as port:
        rows += [measure_server(PYTHON_SERVER, port, clients, deployed, sequence) for clients in CLIENTS]
    for name, delay in ((PROGRAM, 0), (DELAYED, 2)):
        with deploy.Server(deploy.build_program(), deployed.path, max_delay_ms=delay) as server:
            rows += [measure_server(name, server.port, clients, deployed, sequence) for clients in CLIENTS]
    record = records.start_record(hash_sources()) | {"device": device, "steps": STEPS, "rows": rows}
    records.save(record, record_path(device))
    return 0


def record_path(device: str) -> Path:
    """Where the times with the model on a device are recorded."""
    return STUDY.record("" if device == "cpu" else device)


def hash_sources() -> str:
    """A hash of the sources that are measured."""
    return sources.hash_stage(get_stage(8))


def calls(deployed: deploy.Deployed) -> dict[str, Callable]:
    """The model in this process, as functions of its four arguments."""
    return {
        EAGER: deployed.model,
        COMPILED: torch.compile(deployed.model, fullgraph=True),
        PACKAGED: torch._inductor.aoti_load_package(str(deployed.path)),
    }


def measure_call(name: str, call: Callable, deployed: deploy.Deployed, sequence: torch.Tensor) -> dict:
    """A row for calls with a batch of one sequence. The scores are copied to the CPU, where a caller needs them."""
    arguments = deployed.arguments(sequence)
    with step(name), torch.inference_mode():
        torch.testing.assert_close(call(*arguments)[0][0].cpu(), deployed.scores(sequence))
        times = repeat(lambda: call(*arguments)[0].cpu())
    return summarise(name, 1, times)


def measure_server(name: str, port: int, clients: int, deployed: deploy.Deployed, sequence: torch.Tensor) -> dict:
    """A row for a server and a number of clients, each of which sends a request when it has its last answer."""
    times: list[list[float]] = [[] for _ in range(clients)]

    def ask(mine: list[float]) -> None:
        with Client(port, sequence) as client:
            mine += repeat(client.ask)

    with step(f"{name}, {clients} clients"):
        with Client(port, sequence) as client:
            scores = torch.tensor(client.ask()["scores"])
        torch.testing.assert_close(scores, deployed.scores(sequence))
        threads = [threading.Thread(target=ask, args=(mine,)) for mine in times]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return summarise(name, clients, [one for mine in times for one in mine])


def repeat(call: Callable[[], object]) -> list[float]:
    """The seconds of each call, for some seconds, after a warm-up."""
    times = []
    end = time.perf_counter() + WARM_UP
    while time.perf_counter() < end:
        call()
    end = time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        call()
        times.append(time.perf_counter() - start)
    return times


def summarise(name: str, clients: int, times: list[float]) -> dict:
    """A row: the median and the 99th percentile in milliseconds, and calls in a second of all clients together."""
    percentiles = statistics.quantiles(times, n=100)
    return {
        "name": name,
        "clients": clients,
        "p50_ms": round(percentiles[49] * 1e3, 3),
        "p99_ms": round(percentiles[98] * 1e3, 3),
        "per_second": round(len(times) / SECONDS),
    }


class Client:
    """A connection with as little work for each request as Python allows: the request's bytes are made once."""

    def __init__(self, port: int, sequence: torch.Tensor) -> None:
        body = json.dumps({"steps": sequence.tolist()}).encode()
        head = f"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
        self.request = head.encode() + body
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def ask(self) -> dict:
        """Sends the request; returns the answer."""
        self.socket.sendall(self.request)
        received = b""
        while not received.endswith(b"}"):  # both servers answer with one JSON object
            part = self.socket.recv(65536)
            assert part, f"the server closed the connection after {received!r}"
            received += part
        assert received.startswith(b"HTTP/1.1 200 "), received
        return json.loads(received.partition(b"\r\n\r\n")[2])


@contextmanager
def python_server(device: str = "cpu") -> Iterator[int]:
    """The port of the server in Python, which runs in a process of its own."""
    command = [sys.executable, "-m", "common.studies.serving.python_server", device]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
