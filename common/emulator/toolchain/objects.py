"""Compiles sources to objects in a cache, keyed by a hash of all their inputs: after an edit of one file, only that
file is compiled.

The key does not depend on the folder of a source, only on its content: copies of a folder share their objects. On
request, torch's headers are compiled only once; they are most of the work of compiling a short file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .cache import Cache
from .compiler import compiler_command, compiler_version
from .jobs import hold_job, max_jobs

OUTPUT = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
# The headers that a binding includes first, and those that every torch header of one operation includes. Only these
# are precompiled, so a source without the #include of an operation still fails.
BINDING = re.compile(r'^\s*#\s*include\s*[<"](torch/extension\.h|torch/csrc/utils/pybind\.h)[>"]', re.MULTILINE)
OF_EVERY_OPERATION = (
    *("ATen/Context.h", "ATen/DeviceGuard.h", "ATen/TensorUtils.h", "ATen/TracerMode.h", "ATen/core/Generator.h"),
    *("ATen/core/Reduction.h", "ATen/core/Tensor.h", "c10/core/Scalar.h", "c10/core/Storage.h"),
    *("c10/core/TensorOptions.h", "c10/util/Deprecated.h"),
)


class Job(NamedTuple):
    """A source to compile in `folder`; `versions` names what else its object depends on.

    `command` is the compiler; by default, the C++ compiler.
    """

    source: Path
    flags: list[str]
    folder: Path
    versions: str = ""
    command: tuple[str, ...] = ()


def torch_version() -> str:
    """The version of the torch whose headers are compiled; empty without torch."""
    if "torch" in sys.modules:
        return sys.modules["torch"].__version__
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def compile_objects(
    jobs: list[Job], include_dirs: list[Path], cache: Cache, temp: Path, lock: int | None = None
) -> list[tuple[Path | None, str]]:
    """The results of `compile_object` for each job; several compilers run at the same time."""
    with ThreadPoolExecutor(max_jobs()) as pool:
        return list(pool.map(lambda job: compile_object(job, include_dirs, cache, temp, lock), jobs))


def compile_object(
    job: Job, include_dirs: list[Path], cache: Cache, temp: Path, lock: int | None
) -> tuple[Path | None, str]:
    """Compiles a source unless its object is in the cache. Returns the object, or None if that failed, and the
    compiler's output.

    `include_dirs` are the folders with headers that may change; the compiler keeps the file descriptor `lock` open.
    """
    target = find_object(job, include_dirs, cache, temp)
    if target.exists():
        return target, ""
    with lock_object(target):
        if target.exists():  # another process has just compiled it
            return target, ""
        return _compile(job, target, temp, lock)


@contextlib.contextmanager
def lock_object(target: Path) -> Iterator[None]:
    """Lets one process at a time compile an object: builds that start together need the same ones."""
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.with_suffix(".lock")
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _compile(job: Job, target: Path, temp: Path, lock: int | None) -> tuple[Path | None, str]:
    source, flags, folder, _, command = job
    unfinished = temp / target.name
    # The compiler runs in the job's folder and gets a relative path, or the source has a #line. So its messages name
    # the file as its author does.
    name = source.relative_to(folder) if source.is_relative_to(folder) else source
    command = [*(command or (*compiler_command(), "-x", "c++")), *flags, "-c", str(name), "-o", str(unfinished)]
    with hold_job() as held:
        done = subprocess.run(command, cwd=folder, pass_fds=[*held, *([lock] if lock else [])], **OUTPUT)
    if done.returncode != 0:
        return None, done.stdout or f"error: {command[0]} ended with status {done.returncode} at {source.name}\n"
    unfinished.replace(target)
    return target, done.stdout


def find_object(job: Job, include_dirs: list[Path], cache: Cache, temp: Path) -> Path:
    """The path of a source's object in the cache, whether it exists or not."""
    parts = [job.versions, *(flag.replace(str(temp), "") for flag in job.flags)]
    return cache.find("objects", f"{_object_key(find_includes(job.source, include_dirs), parts)}.o")


def _object_key(files: list[Path], parts: list[str]) -> str:
    """A hash of a source, of all files that it includes, and of how it is compiled."""
    parts = [part for part in parts if not re.match(r"-f(debug|file)-prefix-map", part)]  # these name the folder
    digest = hashlib.sha256("\0".join([compiler_version(), *parts]).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def find_includes(source: Path, include_dirs: Iterable[Path]) -> list[Path]:
    """A source and all files that it includes from its own folder or from `include_dirs`, each file once."""
    found = [source]
    for path in found:  # grows during the loop
        for places in find_own_headers(path, include_dirs).values():
            found += [place for place in places if place not in found]
    return found


def find_own_headers(path: Path, include_dirs: Iterable[Path]) -> dict[str, list[Path]]:
    """The headers that a file itself includes from its folder or from `include_dirs`: by name, where they may be."""
    text = path.read_text(errors="replace") if path.is_file() else ""
    names = re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE)
    folders = (path.parent, *include_dirs)
    places = {name: [Path(os.path.normpath(folder / name)) for folder in folders] for name in names}
    found = {name: [place for place in each if place.is_file()] for name, each in places.items()}
    return {name: each for name, each in found.items() if each}


def precompile_headers(job: Job, cache: Cache, lock: int | None = None) -> Job:
    """The job with precompiled headers of torch, which are compiled once for all sources with the same flags.

    The job is returned unchanged if its source has no binding, and so none of torch's large headers, or if the
    headers cannot be compiled. The cache holds the compiled headers: 300 to 700 MB for each set of flags.
    """
    binding = BINDING.search(job.source.read_text(errors="replace"))
    if not binding:
        return job
    flags = [flag for flag in job.flags if not re.match(r"-f(debug|file)-prefix-map|-W", flag)]
    text = "".join(f"#include <{name}>\n" for name in (*OF_EVERY_OPERATION, binding[1]))
    parts = "\0".join([compiler_version(), job.versions, text, *flags])
    name = hashlib.sha256(parts.encode()).hexdigest()[:20]
    folder = cache.find("headers", name, "torch.h.gch").parent
    if not (folder / "torch.h.gch").exists() and not compile_header(folder, text, flags, lock):
        return job
    return job._replace(flags=["-include", str(folder / "torch.h"), *job.flags])


def compile_header(folder: Path, text: str, flags: list[str], lock: int | None) -> bool:
    """Compiles a text to `folder`/torch.h.gch; False when the compiler fails. One process compiles, the others wait.

    g++ reads any file of that name. A file that two processes have written at once makes g++ run out of memory.
    """
    folder.mkdir(parents=True, exist_ok=True)
    finished = folder / "torch.h.gch"
    with (folder / ".lock").open("w") as file:  # the compiler keeps it open, too, if this process is killed
        fcntl.flock(file, fcntl.LOCK_EX)
        if finished.exists():
            return True
        (folder / "torch.h").write_text(text)
        unfinished = folder / "torch.h.unfinished"
        command = [*compiler_command(), "-x", "c++-header", *flags, str(folder / "torch.h"), "-o", str(unfinished)]
        with hold_job() as held:
            inherited = [file.fileno(), *held, *([lock] if lock else [])]
            done = subprocess.run(command, pass_fds=inherited, **OUTPUT)
        if done.returncode != 0:
            unfinished.unlink(missing_ok=True)
            return False
        unfinished.replace(finished)
    return True
