"""A check whose learner is a stranger: each process, each build and each program runs in a sandbox of its own.

What they make comes out through a pipe, as bytes and up to a limit, and is written by us: a sandbox has no folder
that somebody outside reads. What was built goes into another sandbox and nowhere else. Builds find the objects that
the workbook has built before, read-only, so that nobody can leave anything there for the next.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from .. import cache
from ..errors import UserError
from ..stages import ROOT
from . import ending, process, wire

if TYPE_CHECKING:
    from .sandbox import Sandbox

BUILDER = Path(__file__).with_name("builder.py")
BUILD_SECONDS = 300
MOST = 100_000_000  # bytes of a library, or of all files that a program leaves
KEPT = ("objects", "headers", "setups")  # of the workbook's builds
COUNTS = "/tmp/counts.json"
# What a command prints goes to stderr, so that stdout has nothing but the result: a file, or all of the folder.
AND_FILE = '"$@" >&2; status=$?; cat "$0" 2>/dev/null; exit $status'
AND_FOLDER = '"$@" >&2; status=$?; tar --create --file=- . 2>/dev/null; exit $status'


class Confined:
    """The sandboxes of one check, and a folder for what was built in them. Use it as a context."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self.place = Path(tempfile.mkdtemp(prefix="judged-"))
        self.place.chmod(0o755)  # the user inside is another one

    def __enter__(self) -> Confined:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.place, ignore_errors=True)

    def command(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> list[str]:
        """The command line of a learner's process (process.py), which will find here what is built meanwhile."""
        readable = [process.SCRIPT, Path(wire.__file__), self.place]
        return self.box.command(command, folder, environment, readable)

    def library(self, folder: Path, target: str) -> Path:
        """Builds the extension of a folder. Raises `UserError` with the compiler's words."""
        return self._built("library", folder, target, "_C.so")

    def program(
        self,
        file: str,
        arguments: Sequence[str],
        folder: Path,
        seconds: float,
        variables: dict[str, str],
        counts: Path,
    ) -> tuple[int | None, str]:
        """Builds and runs a program: its status, and what it printed. What it counted is written to `counts`."""
        built = self._built("program", folder, file, "program")
        if "EMULATOR_COUNTS" in variables:
            variables = {**variables, "EMULATOR_COUNTS": COUNTS}
        command = ["sh", "-c", AND_FILE, COUNTS, str(built), *arguments]
        status, answer, text = self._fetch(command, folder, seconds, [self.place], variables)
        if answer:
            counts.write_bytes(answer)
        return status, text

    def python(
        self, arguments: Sequence[str], folder: Path, seconds: float, variables: dict[str, str]
    ) -> tuple[int | None, str]:
        """Runs Python on a copy of the folder, which then gets the plain files that were made."""
        command = ["sh", "-c", AND_FOLDER, "sh", sys.executable, *arguments]
        status, answer, text = self._fetch(command, folder, seconds, [], variables)
        unpack(answer, folder)
        return status, text

    def _built(self, what: str, folder: Path, name: str, result: str) -> Path:
        folders = [place / kind for place in (cache.BUILD, *cache.SHARED) for kind in KEPT]
        readable = [ROOT / "common", *(path for path in folders if path.is_dir())]
        variables = {"BUILD_DIR": "/tmp/build", "SHARED_BUILD_DIRS": str(cache.BUILD)}
        command = [sys.executable, str(BUILDER), what, str(folder), name]
        status, answer, text = self._fetch(command, folder, BUILD_SECONDS, readable, variables)
        if status is None:
            raise UserError(f"your code does not build within {BUILD_SECONDS} s")
        if status != 0 or not answer:
            raise UserError(text or f"your code does not build: status {status}")
        path = self.place / result
        path.write_bytes(answer)
        path.chmod(0o755)
        return path

    def _fetch(
        self,
        command: Sequence[str],
        folder: Path,
        seconds: float,
        readable: Sequence[Path],
        variables: dict[str, str],
    ) -> tuple[int | None, bytes, str]:
        """Runs a command: its status (None when its time was up), its stdout up to `MOST`, and its stderr."""
        environment = {**process.environment(), **variables}
        started = subprocess.Popen(
            self.box.command(command, folder, environment, readable),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        printed, answer = process.Printed(started.stderr), bytearray()
        reader = threading.Thread(target=drain, args=(started.stdout, answer), daemon=True)
        reader.start()
        in_time = ending.finish(started, seconds)
        for thread in (reader, printed.thread):
            thread.join(5)
        return (started.returncode if in_time else None), bytes(answer), printed.text


def drain(pipe, answer: bytearray) -> None:
    """Reads all that comes and keeps it up to a limit."""
    while piece := os.read(pipe.fileno(), 1 << 16):
        answer += piece[: MOST - len(answer)]
    pipe.close()


def unpack(archive: bytes, folder: Path) -> None:
    """Writes the plain files of an archive, as far as it can be read, into a folder and nowhere else."""
    left = MOST
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as files:
            for member in files:
                path = PurePosixPath(member.name)
                if not member.isreg() or path.is_absolute() or ".." in path.parts or member.size > left:
                    continue
                left -= member.size
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(files.extractfile(member).read())
                target.chmod(0o755 if member.mode & 0o100 else 0o644)
    except (tarfile.TarError, OSError, ValueError, OverflowError):
        return  # what came before is there; what is missing, the check will miss
