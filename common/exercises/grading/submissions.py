"""Copies the students' submissions, so that a check sees only regular files of a reasonable size.

DIR/STUDENT/3/backward_kernel/...     one folder a student, laid out as `work/` is; a whole `work/` in it will do
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import UserError

MOST_FILES = 500
MOST_BYTES = 20_000_000
MOST_ENTRIES = 10_000  # of one folder
DEEPEST = 10
# Files that tools leave behind and that no exercise asks for.
LEFTOVERS = re.compile(r"build|__pycache__|\.[^/]*|.*\.egg-info|.*\.(so|o|pyc)")
ARCHIVES = re.compile(r".*\.(?:zip|7z|rar|tar|tgz|tbz2?|txz|gz|bz2|xz|zst)", re.IGNORECASE)
# Code that no solution needs, but that is typical of attempts to forge results in the submission's own process.
WORDS = (
    # Python: other modules and frames, and code or names that are put together.
    *(
        "_getframe",
        "f_back",
        "tb_frame",
        "tb_next",
        "gc",
        "inspect",
        "importlib",
        "__import__",
        "builtins",
        "marshal",
    ),
    *("__globals__", "__closure__", "__code__", "__dict__", "__subclasses__", "__builtins__", "__traceback__"),
    *("b64decode", "fromhex", "atexit", "ctypes", "_DisableTorchDispatch"),
    # C and C++: code that runs before or after main, and symbols of others.
    *(
        "constructor",
        "destructor",
        "ifunc",
        "asm",
        "__asm",
        "__asm__",
        "dlopen",
        "dlsym",
        "dlvsym",
        "dl_iterate_phdr",
    ),
    # Ends, signals, variables, memory and input of the process.
    *(
        "quick_exit",
        "at_quick_exit",
        "_exit",
        "_Exit",
        "syscall",
        "ptrace",
        "mprotect",
        "mmap",
        "longjmp",
        "sigaction",
    ),
    *("setenv", "putenv", "unsetenv", "getenv", "secure_getenv", "environ", "stdin", "cin", "getchar", "scanf"),
    # Other threads and processes, where nothing is counted.
    *(
        "std::thread",
        "std::jthread",
        "std::async",
        "jthread",
        "threading",
        "_thread",
        "concurrent",
        "multiprocessing",
    ),
    *("subprocess", "fork", "vfork", "popen", "posix_spawn", "parallel_for", "omp"),
)
PIECES = (
    r"(?:\bsys\.)?\bmodules\b", r"(?<![.\w])(?:eval|exec|compile|globals|locals|setattr|delattr|vars|chr)\s*\(",
    r"\bfrom\s+sys\b|\bsys\s+as\b|\(\s*sys\s*,", r"_python_dispatch",
    r"ExcludeDispatchKey.{0,200}Python|DispatchKey::Python",
    r"/proc|/dev/", r"\bSTDIN", r"(?<![.\w])(?:read|system)\s*\(",
    r"(?i:emulator)",  # its functions and data, by any name
    r"(?:init|fini)_array", r"link_map", r"\.incbin", r"process_vm", r"\bCLONE_", r"\bpthread",
    r"\#\#|%:|\\[uU][0-9a-fA-F]{4}",  # names that the compiler puts together
    r"<(?:thread|future|execution|csignal|dlfcn\.h)>", r"\b(?:thread|async)\s*(?:\w+\s*)?[({]\s*[\[&*]",
)  # fmt: skip
SUSPICIOUS = re.compile("|".join([*PIECES, rf"\b(?:{'|'.join(WORDS)})\b"]))
MOST_CONTINUED = 20
LINE_CONTINUED = re.compile(r"\\\r?\n")  # the next line belongs to this one, even within a word


class Refused(Exception):
    """A submission that is not checked; the message gives the reason."""


def find_students(folder: Path) -> list[Path]:
    """A folder for each student, by name. Raises `UserError` when there is none."""
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder; name the folder that holds one folder for each student: make grade DIR=..."
        )
    found = [path for path in _visible(folder) if path.is_dir() and not path.is_symlink()]
    if not found:
        others = ", ".join(sanitize_name(path.name) for path in _visible(folder)[:5])
        there = f" (only {others})" if others else ""
        raise UserError(
            f"{folder} holds no folders{there}; it should hold one for each student, with the layout of work/"
        )
    return found


def find_others(folder: Path) -> dict[str, str]:
    """Why an entry of `folder` that is not a student's folder is not graded, by its name."""
    found = {}
    for path in _visible(folder):
        if path.is_symlink():
            found[path.name] = "this is a link; hand in the files themselves"
        elif ARCHIVES.fullmatch(path.name):
            found[path.name] = "this is an archive; unpack it into a folder"
        elif not path.is_dir():
            found[path.name] = "this is not a folder"
    return found


def _visible(folder: Path) -> list[Path]:
    """The entries of a folder by name, without those that systems hide."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__")))


def find_submission(student: Path, exercise: str) -> Path | None:
    """The folder of a student's answer to an exercise, such as "3/backward_kernel"; None if there is none.

    Raises `Refused` if its path contains a link, which could lead anywhere.
    """
    for top in (student, student / "work"):
        path = top / exercise
        for part in (*path.parents[: len(path.relative_to(student).parts) - 1], path):
            if part.is_symlink():
                raise Refused(f"{part.relative_to(student)} is a link; hand in the files themselves")
        if path.is_dir():
            return path
        if path.exists():
            raise Refused(f"{path.relative_to(student)} is a file; hand in a folder")
    return None


def find_elsewhere(student: Path, exercise: str) -> str:
    """A remark about an answer in an archive, or one or two folders too deep; empty if there is none."""
    stage, _, name = exercise.partition("/")
    for folder in (student, student / "work"):
        inside = [path for path in folder.glob(f"{stage}/*") if path.name.partition(".")[0] == name]
        for path in sorted([*folder.glob("*"), *inside]):
            if ARCHIVES.fullmatch(path.name):
                return f"there is {path.relative_to(student)}, which is not unpacked"
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
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            if line.rstrip("\r").endswith("\\"):
                line = LINE_CONTINUED.sub("", "\n".join(lines[number - 1 : number + MOST_CONTINUED]))
            # Python reads other forms of a letter, such as a bold one, as that letter.
            match = SUSPICIOUS.search(unicodedata.normalize("NFKC", line))
            if match and line not in known:
                found.append(f"{sanitize_name(name)}:{number} ({match[0]})")
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
        for entry in sorted(itertools.islice(entries, MOST_ENTRIES), key=lambda entry: entry.name):
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


def sanitize_name(name: str, most: int = 100) -> str:
    r"""The name of a file or folder in one line, with escapes such as \n for all that is not printed.

    Different names stay different, unless they are cut.
    """
    escaped = "".join(
        c.encode("unicode_escape").decode() if c == "\\" or unicodedata.category(c) in UNPRINTED else c for c in name
    )
    return sanitize(escaped, most)


# Control and format characters, surrogates, private and unassigned ones, and separators of lines and paragraphs.
UNPRINTED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
