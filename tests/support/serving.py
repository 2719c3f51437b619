"""What the tests of stage 8 share."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from common.deploy import Server
from support.proofs.files import stage_files

DEPLOY_MARKS = [
    pytest.mark.needs("cmake", "g++", "boost", "openssl", "nlohmann-json"),
    pytest.mark.proof("stages' tests", files=[*stage_files(7, 8), "stages/stage8_deploy/CMakeLists.txt"]),
]
ZEROS = {"steps": [[0.0] * 8]}


def zeros(**changes: Any) -> dict[str, Any]:
    """A valid request with one step."""
    return {**ZEROS, **changes}


def send_raw(server: Server, data: bytes) -> socket.socket:
    """A new connection on which these bytes were sent."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(data)
    return connection


def receive(connection: socket.socket) -> str:
    """All that the server sends until it closes the connection."""
    with connection, connection.makefile("rb") as file:
        return file.read().decode()
