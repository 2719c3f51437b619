"""Stage 8's program as a process: a run over a file, and a server with a client."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

# No PATH, and nothing that could lead to a Python.
ENVIRONMENT: dict[str, str] = {}
SECONDS_TO_STOP = 30


def run_program(program: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end, with an empty environment."""
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


class Server:
    """The program as a server on a free port, with an empty environment, for the time of a `with` block.

    `options` are those of `lltm_serve serve`, such as `max_delay_ms=20`. Raises `UserError` if it does not start.
    """

    def __init__(self, program: Path, package: Path, **options: int) -> None:
        named = {"port": 0, **options}
        texts = [text for name, value in named.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        command = [str(program), "serve", str(package), *texts]
        self.process = subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        found = re.search(r"http://127.0.0.1:(\d+)", self.process.stdout.readline())
        if not found:
            raise UserError(self.process.communicate()[1].strip() or "lltm_serve ended without a message")
        self.port = int(found[1])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        """A connection for several requests, one after the other."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def post(self, body: object, connection: http.client.HTTPConnection | None = None) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of a response of /predict. `body` is bytes, or becomes JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        client = connection or self.connect()
        client.request("POST", "/predict", content)
        with client.getresponse() as response:
            result = response.status, json.loads(response.read())
        if connection is None:
            client.close()
        return result

    def get(self, path: str) -> tuple[int, str]:
        """The status and the text of a response."""
        client = self.connect()
        client.request("GET", path)
        with client.getresponse() as response:
            result = response.status, response.read().decode()
        client.close()
        return result

    def metric(self, name: str) -> float:
        """A number of /metrics, such as `lltm_streams`."""
        lines = self.get("/metrics")[1].splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == name), 0.0)

    def stop(self) -> int:
        """Stops the server with SIGTERM; returns its exit status. Kills it if it does not stop."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        return self.process.returncode


def json_line(sequence: Tensor) -> str:
    """A sequence (T, I) as a line of the input of `lltm_serve run`."""
    return json.dumps({"steps": sequence.tolist()}) + "\n"


def scores_of(lines: Sequence[str]) -> list[list[float]]:
    """The scores in the output of `lltm_serve run`."""
    return [json.loads(line)["scores"] for line in lines]


def wait_until(is_so: Callable[[], bool], seconds: float = 20) -> None:
    """Waits until a condition holds. Raises AssertionError if it does not within the time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"it did not become true within {seconds} s"
        time.sleep(0.01)
