"""Copies the students' submissions, so that a check sees only regular files of a reasonable size.

DIR/STUDENT/3/backward_kernel/...     one folder a student, laid out as `work/` is; a whole `work/` in it will do
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import UserError

MOST_FILES = 500
MOST_BYTES = 20_000_000
DEEPEST = 10
# Files that tools leave behind and that no exercise asks for.
LEFTOVERS = re.compile(r"build|__pycache__|\.[^/]*|.*\.egg-info|.*\.(so|o|pyc)")


# Code that no solution needs, but that is typical of attempts to forge results in the submission's own process.
SUSPICIOUS = re.compile(
    r"sys\.modules|_getframe|\bf_back\b|\btb_frame\b|\bgc\.|\bctypes\b|\b_exit\b|/proc/self|_python_dispatch|"
    r"_DisableTorchDispatch|ExcludeDispatchKey\w*.*Python|\b(?:set|put|unset)env\b|\bconstructor\b|init_array|\bdlsym\b|"
    r"\bemulator(?:::|_)|b64decode|\.incbin"
)


class Refused(Exception):
    """A submission that is not checked; the message gives the reason."""


def find_students(folder: Path) -> list[Path]:
    """A folder for each student, by name. Raises `UserError` when there is none."""
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder; name the folder that holds one folder for each student: make grade DIR=..."
        )
    found = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))]
    if not found:
        raise UserError(f"{folder} holds no folders; it should hold one for each student, with the layout of work/")
    return sorted(found)


def find_submission(student: Path, exercise: str) -> Path | None:
    """The folder of a student's answer to an exercise, such as "3/backward_kernel"; None if there is none.

    Raises `Refused` if its path contains a link, which could lead anywhere.
    """
    for top in (student, student / "work"):
        path = top / exercise
        if path.is_dir():
            for part in (path, *path.parents[: len(path.relative_to(student).parts) - 1]):
                if part.is_symlink():
                    raise Refused(f"{part.relative_to(student)} is a link; hand in the files themselves")
            return path
    return None


def find_elsewhere(student: Path, exercise: str) -> str:
    """A remark about an answer that lies one or two folders too deep; empty if there is none."""
    for pattern in (f"*/{exercise}", f"*/*/{exercise}"):
        for path in sorted(student.glob(pattern)):
            if path.is_dir():
                return (
                    f"there is {path.relative_to(student)}; answers are looked for in {exercise} and work/{exercise}"
                )
    return ""


def copy_files(source: Path, target: Path) -> None:
    """Copies the regular files of a folder and makes them readable for all users.

    Raises `Refused` for links, pipes and the like, for binary files of any name, and for too many or too large files.
    """
    left = MOST_BYTES
    for count, entry in enumerate(_files(source, DEEPEST)):
        name = Path(entry.path).relative_to(source)
        if entry.is_symlink() or not entry.is_file(follow_symlinks=False):
            raise Refused(f"{name} is not a regular file; hand in the files themselves, not links")
        if count == MOST_FILES:
            raise Refused(f"more than {MOST_FILES} files; hand in the sources only")
        content = _content(entry.path, left + 1)
        left -= len(content)
        if left < 0:
            raise Refused(f"more than {MOST_BYTES // 10**6} MB; hand in the sources only")
        if not is_text(content):
            raise Refused(f"{name} is not UTF-8 text; hand in the sources only, no build results")
        copied = target / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(content)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def find_suspicious(folder: Path, given: Mapping[str, str]) -> list[str]:
    """Lines that a teacher should look at, such as "answer.py:3 (sys.modules)", without lines of the starter."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder))
        known = set(given.get(name, "").splitlines())
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = SUSPICIOUS.search(line)
            if match and line not in known:
                found.append(f"{name}:{number} ({match[0]})")
    return found


def is_text(content: bytes) -> bool:
    """Whether a file is plain text: libraries, objects and archives contain zero bytes and are rarely valid UTF-8."""
    try:
        return "\0" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _files(folder: Path, depth: int) -> Iterator[os.DirEntry]:
    """The files in a folder and its subfolders, none of which may be a link, except files that tools leave behind."""
    if depth == 0:
        raise Refused(f"more than {DEEPEST} folders within each other")
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if LEFTOVERS.fullmatch(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path), depth - 1)
            else:
                yield entry


def _content(path: str, most: int) -> bytes:
    """The beginning of a regular file; refuses a file that has become a link or a pipe since it was listed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused(f"{path} is not a regular file")
        return file.read(most)


def sanitize(text: str, most: int = 4000) -> str:
    """A text without control characters for terminals or writing direction, cut to a reasonable length."""
    text = "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else "?" for c in text)
    return text if len(text) <= most else f"{text[:most]} [cut after {most} characters]"
