"""Builds a stage for the emulator: rewrites its sources, compiles them with g++, links them with the runtime."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from ..errors import UserError
from ..extension import Extension
from ..objects import Job, compile_all, compiler, included, torch_version, with_headers
from .rewrite import rewrite
from .tokens import read

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
# Many systems' g++ defines _FORTIFY_SOURCE by itself. It has a longjmp that refuses to go from one stack to another,
# which is the point of src/fiber.cpp, and checked copies that would escape our own checks. -g1 has the lines that
# reports need, of what was inlined, too; -g adds all types of torch's headers, half of the compiler's time.
STANDARD = ("-std=c++20", "-g1", "-fPIC", "-fno-gnu-unique", "-U_FORTIFY_SOURCE")
# -O1 keeps kernels close to their lines. Every load and store calls the runtime (src/hooks.cpp): nothing links the
# sanitizer's own. A structure is copied in one access, not member by member, and kernels call no function that g++
# could inline (see qualifiers.h). A stack that overflows must touch its guard.
CHECKED = (
    *("-fsanitize=thread", "--param=tsan-distinguish-volatile=1", "-fno-tree-sra", "-fno-semantic-interposition"),
    "-fstack-clash-protection",
)
# Wrong kernels are our business: g++ may not conclude from them that they never happen.
AS_NVCC = (
    *("-fwrapv", "-fno-strict-aliasing", "-fno-aggressive-loop-optimizations", "-fno-delete-null-pointer-checks"),
    "-Wno-volatile",
)
STAGE_FLAGS = (*STANDARD, "-O1", *CHECKED, *AS_NVCC)
# g++ is not to tidy its memory on the way: a tenth of the time, on which a learner's first run waits.
RUNTIME_FLAGS = (
    *(*STANDARD, "-g0", "-fvisibility=hidden", "-pipe"),
    *("--param=ggc-min-expand=1000", "--param=ggc-min-heapsize=1000000"),
)
# Sources of the runtime that must be fast: they run at every load and store, or every switch of threads.
AT_EVERY_ACCESS = (
    *("access", "barriers", "fiber", "hooks", "launch", "meet", "memory", "order", "races", "releases"),
    *("shadow", "shuffle"),
)
CUDA_LIBRARIES = ("cudart", "c10_cuda", "torch_cuda")


@functools.cache
def knows_cpp20(name_and_version: str | None) -> bool:
    """Whether the compiler, if there is one, knows the parts of C++20 that the emulator is made of."""
    if name_and_version is None:
        return False
    command = [*compiler(), "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=b"#include <source_location>\n", capture_output=True).returncode == 0


def fingerprint() -> bytes:
    """A hash of the emulator itself."""
    digest = hashlib.sha256()
    for path in sorted(path for path in HERE.rglob("*") if path.suffix in (".py", ".h", ".cpp")):
        digest.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.digest()


def build(
    folder: Path,
    extension: Extension,
    work: Path,
    objects: Path,
    log: IO[str],
    lock: int,
    compiled_headers: Path | None = None,
) -> bool:
    """Makes `work/_C.so` of a stage's folder; False when g++ fails, and `log` then says why.

    Objects are kept in `objects`; torch's headers, compiled once, in `compiled_headers` if that is given. Raises
    `UserError` for what the emulator cannot run.
    """
    folder, temp = Path(os.path.normpath(folder.absolute())), work / "temp"
    own_dirs = [path for path in extension.include_dirs if not Path(path).is_absolute()]
    rewrite_all(folder, temp, extension.sources, own_dirs)
    include = [INCLUDE, *(temp / path for path in own_dirs), *(folder / path for path in extension.include_dirs)]
    include.append(Path(sysconfig.get_paths()["include"]))
    common = [*extension.defines, *(f"-I{path}" for path in include if path == INCLUDE or is_wanted(path))]
    jobs = []
    # The slow ones first: host code includes torch's headers.
    for source in sorted(extension.sources, key=lambda source: source.endswith(".cu")):
        own = preprocessor_flags(extension.nvcc) if source.endswith(".cu") else extension.cxx
        places = [f"-fdebug-prefix-map={path}=." for path in (folder, temp)]
        flags = [*common, *own, *STAGE_FLAGS, *places]
        jobs.append(Job(temp / os.path.normpath(source), flags, folder, f"torch {torch_version()}"))
    jobs = versioned([*jobs, *runtime_jobs(temp)])
    if compiled_headers:
        jobs = [with_headers(job, compiled_headers, lock) for job in jobs]
    made = compile_all(jobs, [temp / path for path in own_dirs], objects, temp, lock)
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


def runtime_jobs(temp: Path, *folders: str) -> list[Job]:
    """What compiles the runtime: its sources in `src`, and those in other folders beside it.

    They share headers and templates, and so take a third of the time when they are compiled together, once for each
    core. So names must differ within the whole runtime.
    """
    sources = [source for folder in ("src", *folders) for source in sorted((HERE / folder).glob("*.cpp"))]
    bundles = {
        "fast": [source for source in sources if source.stem in AT_EVERY_ACCESS],
        "slow": [source for source in sources if source.stem not in (*AT_EVERY_ACCESS, "builtin")],
    }
    jobs = [Job(HERE / "src" / "builtin.cpp", [f"-I{INCLUDE}", *RUNTIME_FLAGS, "-O1"], HERE)]
    for name, bundle in bundles.items():
        source = temp / f"{name}.cpp"
        source.write_text("".join(f'#include "{path}"\n' for path in bundle))
        jobs.append(Job(source, [f"-I{INCLUDE}", *RUNTIME_FLAGS, "-O1" if name == "fast" else "-O0"], HERE))
    return jobs


def versioned(jobs: Iterable[Job]) -> list[Job]:
    """The jobs, with the emulator's own headers as a part of what their objects are made of."""
    version = headers_hash()
    return [job._replace(versions=f"{job.versions} {version}") for job in jobs]


def headers_hash() -> str:
    """A hash of the emulator's headers."""
    digest = hashlib.sha256()
    for path in sorted(path for path in INCLUDE.rglob("*") if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
