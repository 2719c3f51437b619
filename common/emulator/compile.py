"""Builds a stage for the emulator: rewrites its sources, compiles them with g++, links them with the runtime.

Objects are kept by the hash of all that goes into them, so that an edit of one file compiles one file.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from ..errors import UserError
from ..extension import Extension
from .rewrite import rewrite
from .tokens import read

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
STANDARD = ("-std=c++20", "-g", "-fPIC", "-fno-gnu-unique")
# -O1 keeps kernels close to their lines; the runtime has nothing to show.
STAGE_FLAGS = (*STANDARD, "-O1")
RUNTIME_FLAGS = (*STANDARD, "-O2", "-fvisibility=hidden")
JOBS = 2
CUDA_LIBRARIES = ("cudart", "c10_cuda", "torch_cuda")


def compiler() -> list[str]:
    """The C++ compiler, as the words that begin its command line."""
    return os.environ.get("CXX", "c++" if shutil.which("c++") else "g++").split()


@functools.cache
def knows_cpp20(name_and_version: str | None) -> bool:
    """Whether the compiler, if there is one, knows the parts of C++20 that the emulator is made of."""
    if name_and_version is None:
        return False
    command = [*compiler(), "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=b"#include <source_location>\n", capture_output=True).returncode == 0


def runtime_sources() -> list[Path]:
    """The emulator's own sources."""
    return sorted((HERE / "src").glob("*.cpp"))


def fingerprint() -> bytes:
    """A hash of the emulator itself."""
    digest = hashlib.sha256()
    for path in sorted(path for path in HERE.rglob("*") if path.suffix in (".py", ".h", ".cpp")):
        digest.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.digest()


def build(folder: Path, extension: Extension, work: Path, objects: Path, log: IO[str], lock: int) -> bool:
    """Makes `work/_C.so` of a stage's folder; False when g++ fails, and `log` then says why.

    Raises `UserError` for what the emulator cannot run.
    """
    folder, temp = Path(os.path.normpath(folder.absolute())), work / "temp"
    own_dirs = [path for path in extension.include_dirs if not Path(path).is_absolute()]
    rewrite_all(folder, temp, extension.sources, own_dirs)
    include = [INCLUDE, *(temp / path for path in own_dirs), *(folder / path for path in extension.include_dirs)]
    include.append(Path(sysconfig.get_paths()["include"]))
    common = [*extension.defines, *(f"-I{path}" for path in include if path == INCLUDE or is_wanted(path))]
    with ThreadPoolExecutor(JOBS) as pool:
        jobs = []
        # The slow ones first: host code includes torch's headers.
        for source in sorted(extension.sources, key=lambda source: source.endswith(".cu")):
            own = preprocessor_flags(extension.nvcc) if source.endswith(".cu") else extension.cxx
            flags = [*common, *own, *STAGE_FLAGS, f"-fdebug-prefix-map={folder}=."]
            jobs.append((temp / os.path.normpath(source), flags, folder))
        for source in runtime_sources():
            jobs.append((source, [f"-I{INCLUDE}", *RUNTIME_FLAGS], HERE))
        headers = [temp / path for path in own_dirs]
        made = list(pool.map(lambda job: compiled(*job, headers, objects, temp, lock), jobs))
    for _, output in made:
        log.write(output)
    if any(path is None for path, _ in made):
        return False
    libraries = [f"-l{name}" for name in extension.libraries if name not in CUDA_LIBRARIES]
    paths = [f"-L{path}" for path in extension.library_dirs if (folder / path).exists()]
    command = [*compiler(), "-shared", *(str(path) for path, _ in made), "-o", str(work / "_C.so")]
    command += [*paths, *libraries, *extension.link_args]
    log.flush()
    return subprocess.run(command, cwd=folder, stdout=log, stderr=log, pass_fds=[lock]).returncode == 0


def rewrite_all(folder: Path, temp: Path, sources: Iterable[str], own_dirs: Iterable[str]) -> None:
    """Copies a stage's sources, and those of its headers that they include, to `temp`, rewritten."""
    search = [folder / path for path in own_dirs]
    for source in sources:
        for path in included(Path(os.path.normpath(folder / source)), search):
            if not path.is_relative_to(folder):
                raise UserError(f"{os.path.relpath(path, folder)} lies outside of the stage's folder")
            name = str(path.relative_to(folder))
            copy = temp / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(rewrite(read(path, name)), encoding="utf-8")


def is_wanted(path: Path) -> bool:
    """Whether to look for headers in a folder: not in CUDA's own, which is not there on every machine."""
    return path.exists() and not (path / "cuda_runtime.h").exists()


def preprocessor_flags(flags: Iterable[str]) -> list[str]:
    """Those of nvcc's flags that g++ understands in the same way."""
    return [flag for flag in flags if flag[:2] in ("-D", "-U", "-I")]


def compiled(
    source: Path, flags: list[str], folder: Path, headers: list[Path], objects: Path, temp: Path, lock: int
) -> tuple[Path | None, str]:
    """The object of a source, compiled unless it is there already, and what the compiler said."""
    target = objects / f"{object_key(included(source, headers), [flag.replace(str(temp), '') for flag in flags])}.o"
    if target.exists():
        return target, ""
    made = temp / target.name
    command = [*compiler(), "-x", "c++", *flags, "-c", str(source), "-o", str(made)]
    # Run in the stage's folder, so that messages find the learner's own lines through `#line`.
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    done = subprocess.run(command, cwd=folder, pass_fds=[lock], **output)
    if done.returncode != 0:
        return None, done.stdout or f"error: {command[0]} ended with status {done.returncode} at {source.name}\n"
    objects.mkdir(parents=True, exist_ok=True)
    made.replace(target)
    return target, done.stdout


def object_key(files: list[Path], flags: list[str]) -> str:
    """A hash of a source and what it includes, of the emulator's headers, and of how it is compiled."""
    import torch

    version = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout
    # Where the stage lies does not matter, only what is in it: a learner's copy shares the objects.
    flags = [flag for flag in flags if not flag.startswith("-fdebug-prefix-map")]
    digest = hashlib.sha256("\0".join([version, torch.__version__, *flags]).encode())
    for path in [*files, *sorted(path for path in INCLUDE.rglob("*") if path.is_file())]:
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
