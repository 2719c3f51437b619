"""Runs pip and explains in one line why it failed."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import tempfile

from .console import say
from .errors import UserError

NETWORK = re.compile(
    r"name resolution|Name or service not known|Failed to resolve|NewConnectionError|Connection refused|"
    r"Connection reset|connection broken|Network is unreachable|No route to host|timed? ?out|ProxyError|SSLError",
    re.IGNORECASE,
)
DOWNLOADING = re.compile(r"\s*Downloading (?P<name>[^\s-]+)-(?P<version>[^\s-]+)\S* \((?P<size>[\d.]+) MB\)")
DISK = re.compile(r"No space left|Errno 28|Disk quota|Errno 122")


def torch_index() -> str | None:
    """The wheel index that the reader named for torch, such as the one of its CPU build."""
    return os.environ.get("TORCH_INDEX") or None


def run_pip(command: list[str]) -> None:
    """Runs one pip command. Raises `UserError` with the cause when it fails."""
    status, errors = run_and_show(command)
    importlib.invalidate_caches()
    if status != 0:
        raise UserError(cause(errors))


def run_and_show(command: list[str]) -> tuple[int, str]:
    """Runs pip and names only its large downloads; its status and what it wrote to stderr."""
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace") as process,
    ):
        for line in process.stdout:
            if found := DOWNLOADING.match(line):
                say(f"  downloading {found['name']} {found['version']}, {float(found['size']):.0f} MB")
            elif line.startswith("Installing collected packages"):
                say("  installing")
        status = process.wait()
        errors.seek(0)
        return status, errors.read()


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
