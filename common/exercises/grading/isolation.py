"""Isolates a check of untrusted work: each process, each build and each program runs in its own sandbox.

Results leave a sandbox through a pipe, as a limited number of bytes, and are written to files outside; no folder of a
sandbox is read from outside. A build result is used only in another sandbox. Builds can read objects of the starter
but not write them: a submission can neither link an object of a solution nor leave anything for the next one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

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
MAX_FILES = 1000  # that a program leaves
MAX_COUNTS = 2_000_000  # bytes of a program's counts: JSON text, whose objects take up to 50 times as much memory
COUNTS = "/tmp/counts.json"
# A command's output goes to stderr, so that stdout holds only the result: a file, or the whole folder.
AND_FILE = '"$@" >&2; status=$?; cat "$0" 2>/dev/null; exit $status'
AND_FOLDER = '"$@" >&2; status=$?; tar --create --format=ustar --file=- . 2>/dev/null; exit $status'
# Runs a program with the arguments in a file: bubblewrap's command line has at most 9,000 words.
WITH_ARGUMENTS = (
    "import os, sys; program, file = sys.argv[1:]; "
    "os.execv(program, [program, *open(file, 'rb').read().split(b'\\0')[:-1]])"
)


class Isolation:
    """Runs the processes of one check in sandboxes and keeps their builds in a folder. It is a context manager."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self.built_files = Path(tempfile.mkdtemp(prefix="judged-"))
        self.built_files.chmod(0o755)  # the sandbox runs as another user
        self.printed = ""  # by builds and programs that failed
        self.handed_in: set[Path] = (
            set()
        )  # all files of the submission, recorded before the first run that may add others

    def __enter__(self) -> Isolation:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.built_files, ignore_errors=True)

    def command(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> list[str]:
        """The command line of a learner's process (process.py), which can read the builds once they are finished."""
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
        words = self.built_files / "arguments"
        words.write_bytes(b"".join(f"{word}\0".encode() for word in arguments))
        words.chmod(0o644)  # the sandbox runs as another user
        start = [sys.executable, "-I", "-S", "-c", WITH_ARGUMENTS, str(built), str(words)]
        command = ["sh", "-c", AND_FILE, COUNTS, *start]
        with tempfile.TemporaryFile() as answer:
            status, text = self._fetch(
                command, folder, seconds, [self.built_files], variables, answer, stdin=stdin, most=MAX_COUNTS
            )
            answer.seek(0)
            if found := answer.read():
                counts.write_bytes(found)
        return status, text

    def python(
        self, arguments: Sequence[str], folder: Path, seconds: float, variables: dict[str, str], stdin: str = ""
    ) -> tuple[int | None, str]:
        """Runs Python on a copy of the folder, then copies the regular files that it created back.

        Files that were handed in stay unchanged, so that every run sees the same files as the check.
        """
        self.handed_in = self.handed_in or set(folder.rglob("*"))
        command = ["sh", "-c", AND_FOLDER, "sh", sys.executable, *arguments]
        with tempfile.TemporaryFile() as archive:
            status, text = self._fetch(command, folder, seconds, [], variables, archive, stdin=stdin)
            archive.seek(0)
            extract_files(archive, folder, self.handed_in)
        return status, text

    def _build(self, what: str, folder: Path, name: str, result: str) -> Path:
        given = given_builds()
        readable = [ROOT / "common", given, (given / "headers").resolve()]
        variables = {"BUILD_DIR": "/tmp/build", "SHARED_BUILD_DIRS": str(given)}
        command = [sys.executable, str(BUILDER), what, str(folder), name]
        with tempfile.TemporaryFile() as answer:
            status, text = self._fetch(command, folder, BUILD_SECONDS, readable, variables, answer, read_only=True)
            if status is None:
                raise UserError(f"your code does not build within {BUILD_SECONDS} s")
            if status != 0 or not answer.tell():
                raise UserError(text or f"your code does not build: status {status}")
            answer.seek(0)
            path = self.built_files / result
            with path.open("wb") as file:
                shutil.copyfileobj(answer, file)
        path.chmod(0o755)
        return path

    def _fetch(
        self,
        command: Sequence[str],
        folder: Path,
        seconds: float,
        readable: Sequence[Path],
        variables: dict[str, str],
        answer: BinaryIO,
        read_only: bool = False,
        stdin: str = "",
        most: int = MAX_BYTES,
    ) -> tuple[int | None, str]:
        """Runs a command: its status (None if it ran out of time) and its stderr.

        Its stdout, up to `most` bytes, is written to the file `answer`, not kept in memory.
        Raises `Stopped` if the sandbox had to kill it or one of its processes.
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
        printed = process.OutputReader(started.stderr)
        reader = threading.Thread(target=copy_pipe, args=(started.stdout, answer, most), daemon=True)
        reader.start()
        in_time = ending.finish(started, seconds)
        for thread in (reader, printed.thread):
            thread.join(5)
        status = started.returncode if in_time else None
        if message := find_message(printed.text):
            raise Stopped("crash", message)
        if status != 0:
            self.printed = "\n".join(filter(None, [self.printed, printed.text]))
        return status, printed.text


def given_builds() -> Path:
    """The folder that holds only objects of starters. It shares torch's compiled headers with all builds."""
    folder, headers = paths.build_dir() / "given", paths.build_dir() / "headers"
    for path in (folder, headers):
        path.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "headers").symlink_to(headers)
    return folder


def build_given(folder: Path, target: str) -> None:
    """Builds as much of a starter as possible, so that submissions can reuse objects of files they did not change."""
    given = str(given_builds())
    environment = {**os.environ, "BUILD_DIR": given, "SHARED_BUILD_DIRS": given}
    has_extension = (folder / "setup.py").exists()
    wanted = [("library", target)] if has_extension else [("program", path.name) for path in folder.glob("*.cu")]
    for what, name in wanted:
        command = [sys.executable, str(BUILDER), what, str(folder), name]
        subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True)


def copy_pipe(pipe, file: BinaryIO, most: int) -> None:
    """Reads a pipe to its end and writes the data to a file, up to a limit."""
    with contextlib.suppress(ValueError):  # the file is closed: the rest is not needed
        while piece := os.read(pipe.fileno(), 1 << 16):
            most -= file.write(piece[:most])
    pipe.close()


# Members whose headers continue in blocks of any number, which tarfile would read into memory.
EXTENDED = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE),
)


def members(archive: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """Yields the members of a ustar archive, each while the archive is at the first byte of its data.

    Raises `tarfile.TarError` for what is not a header, for an extended header and for a wrong size.
    """
    while any(header := archive.read(tarfile.BLOCKSIZE)):
        member = tarfile.TarInfo.frombuf(header, tarfile.ENCODING, "surrogateescape")
        if member.type in EXTENDED:
            raise tarfile.ReadError(f"a member of type {member.type!r}")
        if not 0 <= member.size <= MAX_BYTES:
            raise tarfile.ReadError(f"a member of {member.size} bytes")
        blocks = -(-member.size // tarfile.BLOCKSIZE) if member.isreg() else 0
        end = archive.tell() + blocks * tarfile.BLOCKSIZE
        yield member
        archive.seek(end)


def extract_files(archive: BinaryIO, folder: Path, kept: Collection[Path] = ()) -> None:
    """Writes the regular files of an archive into a folder, as far as the archive can be read, and nowhere else.

    Files in `kept` are not overwritten.
    """
    left = MAX_BYTES
    try:
        for member in itertools.islice(members(archive), MAX_FILES):
            path = PurePosixPath(member.name)
            if not member.isreg() or path.is_absolute() or ".." in path.parts or member.size > left:
                continue
            left -= member.size
            target = folder / path
            if target in kept:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(member.size))
            target.chmod(0o755 if member.mode & 0o100 else 0o644)
    except (tarfile.TarError, OSError, ValueError, OverflowError):
        return  # files before the error are written; the check reports missing ones
