"""Runs pip and explains in one line why it failed."""

from __future__ import annotations

import importlib
import os
import re
import subprocess

from .errors import UserError

NETWORK = re.compile(
    r"name resolution|Name or service not known|Failed to resolve|NewConnectionError|Connection refused|"
    r"Connection reset|connection broken|Network is unreachable|No route to host|timed? ?out|ProxyError|SSLError",
    re.IGNORECASE,
)
DISK = re.compile(r"No space left|Errno 28|Disk quota|Errno 122")


def torch_index() -> str | None:
    """The wheel index that the reader named for torch, such as the one of its CPU build."""
    return os.environ.get("TORCH_INDEX") or None


def run_pip(command: list[str]) -> None:
    """Runs one pip command. Raises `UserError` with the cause when it fails."""
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    importlib.invalidate_caches()
    if done.returncode != 0:
        raise UserError(cause(done.stderr))


def cause(stderr: str) -> str:
    """The reason why pip failed, in one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    last = (errors or lines or ["nothing"])[-1]
    if DISK.search(stderr):
        return f"the disk is full; pip said: {last}"
    if NETWORK.search(stderr):
        return "no network, or the package index cannot be reached"
    return f"pip said: {last}"
