"""Objects kept by the hash of all that goes into them, so that an edit of one file compiles one file.

Where a source lies does not matter, only what is in it: a stage, its copies and a learner's work share objects.
Torch's headers, most of the work of compiling a short file, are compiled once where that is asked for.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .cache import kept
from .pruning import used

JOBS = 2
OUTPUT = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
# What a binding begins with, and what torch's header of any one operation includes beside that operation. So nothing
# that a source forgets to include is there by chance.
BINDING = re.compile(r'^\s*#\s*include\s*[<"](torch/extension\.h|torch/csrc/utils/pybind\.h)[>"]', re.MULTILINE)
OF_EVERY_OPERATION = (
    *("ATen/Context.h", "ATen/DeviceGuard.h", "ATen/TensorUtils.h", "ATen/TracerMode.h", "ATen/core/Generator.h"),
    *("ATen/core/Reduction.h", "ATen/core/Tensor.h", "c10/core/Scalar.h", "c10/core/Storage.h"),
    *("c10/core/TensorOptions.h", "c10/util/Deprecated.h"),
)


class Job(NamedTuple):
    """A source to compile, in `folder`; `versions` of what else goes into its object, by their names.

    `command` is what compiles it; left out, the C++ compiler.
    """

    source: Path
    flags: list[str]
    folder: Path
    versions: str = ""
    command: tuple[str, ...] = ()


def compiler() -> list[str]:
    """The C++ compiler, as the words that begin its command line."""
    return (os.environ.get("CXX") or ("c++" if shutil.which("c++") else "g++")).split()


@functools.cache
def compiler_version() -> str:
    """What the compiler says of itself."""
    return subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout


def torch_version() -> str:
    """That of the torch whose headers are compiled."""
    import torch

    return torch.__version__


def compile_all(
    jobs: list[Job], headers: list[Path], objects: Path, temp: Path, lock: int | None = None
) -> list[tuple[Path | None, str]]:
    """For each job the object, None where the compiler failed, and what it said. `headers` are folders."""
    with ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(lambda job: compiled(job, headers, objects, temp, lock), jobs))


def compiled(job: Job, headers: list[Path], objects: Path, temp: Path, lock: int | None) -> tuple[Path | None, str]:
    """The object of a source, compiled unless it is there already, and what the compiler said."""
    source, flags, folder, _, command = job
    target = object_of(job, headers, objects, temp)
    if target.exists():
        return target, ""
    made = temp / target.name
    # Run in the source's folder and named from there, or through `#line`: so messages give the learner's own names.
    name = source.relative_to(folder) if source.is_relative_to(folder) else source
    command = [*(command or (*compiler(), "-x", "c++")), *flags, "-c", str(name), "-o", str(made)]
    done = subprocess.run(command, cwd=folder, pass_fds=[lock] if lock else [], **OUTPUT)
    if done.returncode != 0:
        return None, done.stdout or f"error: {command[0]} ended with status {done.returncode} at {source.name}\n"
    objects.mkdir(parents=True, exist_ok=True)
    made.replace(target)
    return target, done.stdout


def object_of(job: Job, headers: list[Path], objects: Path, temp: Path) -> Path:
    """Where the object of a source is kept, or will be."""
    named = [job.versions, *(flag.replace(str(temp), "") for flag in job.flags)]
    return used(kept(objects / f"{object_key(included(job.source, headers), named)}.o"))


def object_key(files: list[Path], flags: list[str]) -> str:
    """A hash of a source and what it includes, and of how it is compiled."""
    # Where the stage lies does not matter, only what is in it: a learner's copy shares the objects.
    flags = [flag for flag in flags if not re.match(r"-f(debug|file)-prefix-map", flag)]
    digest = hashlib.sha256("\0".join([compiler_version(), *flags]).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def included(source: Path, search: Iterable[Path]) -> list[Path]:
    """A source and all that it includes from its own folder or those in `search`, each file once."""
    found = [source]
    for path in found:  # grows on the way
        text = path.read_text(errors="replace") if path.is_file() else ""
        for name in re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE):
            places = (Path(os.path.normpath(parent / name)) for parent in (path.parent, *search))
            found += [place for place in places if place.is_file() and place not in found]
    return found


def with_headers(job: Job, places: Path, lock: int | None = None) -> Job:
    """The job with torch's headers compiled before, once for all sources with these flags.

    A source that has no binding, and so none of torch's heavy headers, stays as it is; so does every source when the
    headers cannot be compiled. What is compiled is kept in `places`: 300 to 700 MB for each set of flags.
    """
    binding = BINDING.search(job.source.read_text(errors="replace"))
    if not binding:
        return job
    flags = [flag for flag in job.flags if not re.match(r"-f(debug|file)-prefix-map|-W", flag)]
    text = "".join(f"#include <{name}>\n" for name in (*OF_EVERY_OPERATION, binding[1]))
    named = "\0".join([compiler_version(), job.versions, text, *flags])
    name = hashlib.sha256(named.encode()).hexdigest()[:20]
    folder = used(kept(places / name / "torch.h.gch").parent)
    if not (folder / "torch.h.gch").exists() and not compiled_header(folder, text, flags, lock):
        return job
    return job._replace(flags=["-include", str(folder / "torch.h"), *job.flags])


def compiled_header(folder: Path, text: str, flags: list[str], lock: int | None) -> bool:
    """Compiles a text to `folder`/torch.h.gch; False when the compiler fails. One at a time, the others wait for it.

    g++ takes whatever is there by that name: a file that two have written at once sends it out of memory.
    """
    folder.mkdir(parents=True, exist_ok=True)
    finished = folder / "torch.h.gch"
    with (folder / ".lock").open("w") as file:  # held by the compiler, too, should we be killed
        fcntl.flock(file, fcntl.LOCK_EX)
        if finished.exists():
            return True
        (folder / "torch.h").write_text(text)
        made = folder / "torch.h.unfinished"
        command = [*compiler(), "-x", "c++-header", *flags, str(folder / "torch.h"), "-o", str(made)]
        held = [file.fileno(), *([lock] if lock else [])]
        if subprocess.run(command, pass_fds=held, **OUTPUT).returncode != 0:
            made.unlink(missing_ok=True)
            return False
        made.replace(finished)
    return True
