"""Isolates a check of untrusted work: each process, each build and each program runs in a sandbox of its own.

What they make comes out through a pipe, as bytes and up to a limit, and is written by us: no folder of a
sandbox is read outside. What was built goes into another sandbox and nowhere else. Builds find objects of what was
handed out, read-only: a submission can neither link an object of a solution nor leave anything there for the next.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ... import paths
from ...errors import UserError
from ...paths import ROOT
from ..runner import ending, process, wire
from ..runner.process import Stopped
from .sandbox import find_message

if TYPE_CHECKING:
    from .sandbox import Sandbox

BUILDER = Path(__file__).with_name("builder.py")
BUILD_SECONDS = 300
MAX_BYTES = 100_000_000  # bytes of a library, or of all files that a program leaves
COUNTS = "/tmp/counts.json"
# What a command prints goes to stderr, so that stdout has nothing but the result: a file, or all of the folder.
AND_FILE = '"$@" >&2; status=$?; cat "$0" 2>/dev/null; exit $status'
AND_FOLDER = '"$@" >&2; status=$?; tar --create --file=- . 2>/dev/null; exit $status'


class Isolation:
    """Runs what one check needs in sandboxes, and keeps what was built there in a folder. Use it as a context."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self.built_files = Path(tempfile.mkdtemp(prefix="judged-"))
        self.built_files.chmod(0o755)  # the user inside is another one
        self.printed = ""  # by builds and programs that failed
        self.handed_in: set[Path] = set()  # all files, once something was run that makes others

    def __enter__(self) -> Isolation:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.built_files, ignore_errors=True)

    def command(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> list[str]:
        """The command line of a learner's process (process.py), which will find here what is built meanwhile."""
        readable = [process.SCRIPT, Path(wire.__file__), self.built_files]
        return self.box.command(command, folder, environment, readable, read_only=True)

    def library(self, folder: Path, target: str) -> Path:
        """Builds the extension of a folder. Raises `UserError` with the compiler's messages."""
        return self._build("library", folder, target, "_C.so")

    def program(
        self,
        file: str,
        arguments: Sequence[str],
        folder: Path,
        seconds: float,
        variables: dict[str, str],
        counts: Path,
        stdin: str = "",
    ) -> tuple[int | None, str]:
        """Builds and runs a program: its status, and what it printed. What it counted is written to `counts`."""
        built = self._build("program", folder, file, "program")
        if "EMULATOR_COUNTS" in variables:
            variables = {**variables, "EMULATOR_COUNTS": COUNTS}
        command = ["sh", "-c", AND_FILE, COUNTS, str(built), *arguments]
        status, answer, text = self._fetch(command, folder, seconds, [self.built_files], variables, stdin=stdin)
        if answer:
            counts.write_bytes(answer)
        return status, text

    def python(
        self, arguments: Sequence[str], folder: Path, seconds: float, variables: dict[str, str], stdin: str = ""
    ) -> tuple[int | None, str]:
        """Runs Python on a copy of the folder, which then gets the plain files that were made.

        What was handed in stays as it is: what a check has read is what all that it runs will find.
        """
        self.handed_in = self.handed_in or set(folder.rglob("*"))
        command = ["sh", "-c", AND_FOLDER, "sh", sys.executable, *arguments]
        status, answer, text = self._fetch(command, folder, seconds, [], variables, stdin=stdin)
        extract_files(answer, folder, self.handed_in)
        return status, text

    def _build(self, what: str, folder: Path, name: str, result: str) -> Path:
        given = given_builds()
        readable = [ROOT / "common", given, (given / "headers").resolve()]
        variables = {"BUILD_DIR": "/tmp/build", "SHARED_BUILD_DIRS": str(given)}
        command = [sys.executable, str(BUILDER), what, str(folder), name]
        status, answer, text = self._fetch(command, folder, BUILD_SECONDS, readable, variables, read_only=True)
        if status is None:
            raise UserError(f"your code does not build within {BUILD_SECONDS} s")
        if status != 0 or not answer:
            raise UserError(text or f"your code does not build: status {status}")
        path = self.built_files / result
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
        read_only: bool = False,
        stdin: str = "",
    ) -> tuple[int | None, bytes, str]:
        """Runs a command: its status (None when its time was up), its stdout up to `MAX_BYTES`, and its stderr.

        Raises `Stopped` when the sandbox had to end it, or one of its processes.
        """
        environment = {**process.environment(), **variables}
        started = subprocess.Popen(
            self.box.command(command, folder, environment, readable, read_only),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        process.write_stdin(started, stdin)
        printed, answer = process.OutputReader(started.stderr), bytearray()
        reader = threading.Thread(target=read_into, args=(started.stdout, answer), daemon=True)
        reader.start()
        in_time = ending.finish(started, seconds)
        for thread in (reader, printed.thread):
            thread.join(5)
        status = started.returncode if in_time else None
        if message := find_message(printed.text):
            raise Stopped("crash", message)
        if status != 0:
            self.printed = "\n".join(filter(None, [self.printed, printed.text]))
        return status, bytes(answer), printed.text


def given_builds() -> Path:
    """The folder with objects of starters, and of nothing else; torch's compiled headers are those of all builds."""
    folder, headers = paths.build_dir() / "given", paths.build_dir() / "headers"
    for path in (folder, headers):
        path.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "headers").symlink_to(headers)
    return folder


def build_given(folder: Path, target: str) -> None:
    """Builds a starter, as far as it can be built, so that submissions find objects of what they did not change."""
    given = str(given_builds())
    environment = {**os.environ, "BUILD_DIR": given, "SHARED_BUILD_DIRS": given}
    has_extension = (folder / "setup.py").exists()
    wanted = [("library", target)] if has_extension else [("program", path.name) for path in folder.glob("*.cu")]
    for what, name in wanted:
        command = [sys.executable, str(BUILDER), what, str(folder), name]
        subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True)


def read_into(pipe, answer: bytearray) -> None:
    """Reads all that comes and keeps it up to a limit."""
    while piece := os.read(pipe.fileno(), 1 << 16):
        answer += piece[: MAX_BYTES - len(answer)]
    pipe.close()


def extract_files(archive: bytes, folder: Path, kept: Collection[Path] = ()) -> None:
    """Writes the plain files of an archive, as far as it can be read, into a folder and nowhere else.

    Those in `kept` stay as they are.
    """
    left = MAX_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as files:
            for member in files:
                path = PurePosixPath(member.name)
                if not member.isreg() or path.is_absolute() or ".." in path.parts or member.size > left:
                    continue
                left -= member.size
                target = folder / path
                if target in kept:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(files.extractfile(member).read())
                target.chmod(0o755 if member.mode & 0o100 else 0o644)
    except (tarfile.TarError, OSError, ValueError, OverflowError):
        return  # what came before is there; what is missing, the check will miss
