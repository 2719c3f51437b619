"""Builds a stage with its own setup.py, or builds the same extension with the emulator, and caches the result.

A build is in `build/PACKAGE-TARGET/KEY/`, where KEY is a hash of its inputs: sources, flags, compiler and versions.
It is made in a folder beside that and renamed at the end, under a lock that the kernel releases when its holders die.
So the next build never mistakes the remains of a killed one for a result.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO

from ..emulator import (
    Extension,
    build_extension,
    build_once,
    compiler_command,
    describe_compiler,
    find_sources,
    fingerprint,
    first_errors,
    max_jobs,
    read_setup,
    write_wrapper,
)
from ..errors import UserError
from ..key import Key
from ..paths import build_cache
from ..stages import Stage
from . import host, nvcc, targets

MODULE = "_C"  # the extension of every folder, without its package
# Environment variables that change the output of a compiler.
COMPILER_VARIABLES = (
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "CUDA_HOME",
    "TORCH_CUDA_ARCH_LIST",
    "ONE_OF_EACH",  # a setup.py may read it
    "NVCC_APPEND_FLAGS",
)


@dataclass(frozen=True)
class Build:
    """A built extension: the library, the seconds that the build took, and whether it was cached.

    For `compile-only`, there is no library: `path` is a JSON file with the seconds for each architecture.
    """

    path: Path
    seconds: float
    cached: bool


def build_stage(stage: Stage, target: str, settings: Mapping[str, str] | None = None) -> Build:
    """Builds a stage's extension for a target, or finds it in the cache. Raises `UserError` if it does not build.

    `settings` are environment variables of this build, among `COMPILER_VARIABLES`.
    """
    return build_folder(stage.folder, target, f"{stage.package}-{target}", f"stage {stage.number}", settings=settings)


def build_folder(
    folder: Path, target: str, place: str, name: str, quick: bool = False, settings: Mapping[str, str] | None = None
) -> Build:
    """Builds the extension of any folder with a stage's layout, or finds it in `place` of the build cache.

    Messages call it `name`. `quick` builds share objects and torch's compiled headers: an edit is built in seconds,
    but on `host` without the flags of setup.py's own build. Raises `UserError` if the build fails.
    """
    if reason := targets.why_unavailable(target):
        raise UserError(f"cannot build {name} for {target}: {reason}")
    settings = settings or {}
    final = build_cache().find(place, folder_key(folder, target, quick, settings))
    try:
        is_new = build_once(final, lambda work, lock: _build_into(folder, target, work, name, quick, settings, lock))
    except OSError as error:
        where, reason = os.path.relpath(error.filename or final.parent), error.strerror or error
        raise UserError(f"cannot build {name} in {where}: {reason}") from None
    seconds = json.loads((final / "build.json").read_text())["seconds"]
    return Build(_library(final), seconds, cached=not is_new)


def _build_into(
    folder: Path, target: str, work: Path, name: str, quick: bool, settings: Mapping[str, str], lock: int
) -> None:
    """Builds into `work`. The compilers hold the lock, too, so it outlives a killed build."""
    start = time.perf_counter()
    try:
        with (work / "log.txt").open("w") as log:
            built = _compile(folder, target, work, quick, settings, log, lock)
    except UserError as error:
        raise UserError(f"{name} does not build.\n  {error}") from None
    if not built:
        failed = work.parent / "failed.log"
        (work / "log.txt").replace(failed)
        errors = first_errors(failed.read_text(errors="replace"))
        raise UserError(f"{name} does not build.\n{errors}\nAll of it: {os.path.relpath(failed)}")
    seconds = round(time.perf_counter() - start, 2)
    (work / "build.json").write_text(json.dumps({"seconds": seconds}))


def _compile(
    folder: Path, target: str, work: Path, quick: bool, settings: Mapping[str, str], log: IO[str], lock: int
) -> bool:
    """Whether the build into `work` succeeded; if not, the log has the messages."""
    variables = {**settings, **setup_variables(target, work.parent)}
    if target == "cuda" or (target == "host" and not quick):
        options = ["--build-temp", str(work / "temp"), "--build-lib", str(work)]
        command = [sys.executable, "setup.py", "-q", "build_ext", *options]
        environment = {**os.environ, **variables, "MAX_JOBS": str(max_jobs())}
        # The compilers of this build are jobs of the common pool, too.
        environment["CXX"] = str(write_wrapper(work / "temp" / "jobs", compiler_command()))
        if target == "cuda":
            environment["TORCH_CUDA_ARCH_LIST"] = nvcc.gpu_architectures()
            compiler = os.environ.get("PYTORCH_NVCC") or nvcc.find_nvcc()
            environment["PYTORCH_NVCC"] = str(write_wrapper(work / "temp" / "jobs", shlex.split(compiler)))
        run = subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, pass_fds=[lock])
        return run.returncode == 0
    if target == "compile-only":
        extension = read_setup(folder, work, log, variables, nvcc.supported_architectures(), MODULE)
        return extension is not None and nvcc.compile_for_architectures(folder, extension, work, log, lock)
    if quick:
        extension = read_setup_once(folder, work, log, variables)
    else:
        extension = read_setup(folder, work, log, variables, name=MODULE)
    if extension is None:
        return False
    cache = build_cache()
    if target == "host":
        return host.build_for_host(folder, extension, work, cache, log, lock)
    for path in find_sources(folder, extension):
        if not path.is_relative_to(folder):  # the key of the build does not cover it
            raise UserError(f"{os.path.relpath(path, folder)} is outside of the stage's folder")
    return build_extension(folder, extension, work, cache, log, lock, use_compiled_headers=quick)


def setup_variables(target: str, place: Path) -> dict[str, str]:
    """The variables that a setup.py may read: whether to build CUDA code, and a namespace that no other build uses.

    The namespace is for libraries that register operators: one process may load several targets of a stage.
    """
    return {"USE_CUDA": str(int(target != "host")), "LLTM_NAMESPACE": re.sub(r"\W", "_", place.name)}


def read_setup_once(folder: Path, work: Path, log: IO[str], variables: dict[str, str]) -> Extension | None:
    """The extension that a setup.py describes; it runs only once for each version of its text and list of sources."""
    import torch

    names = sorted(str(path.relative_to(folder)) for path in (folder / "csrc").rglob("*"))
    parts = [
        (folder / "setup.py").read_text(errors="replace"),
        torch.__version__,
        torch.__file__,
        sys.version,
        *variables.values(),
        *names,
        *(field.name for field in fields(Extension)),
    ]
    answer = build_cache().find("setups", f"{Key(*parts).text}.json")
    if answer.exists():
        (work / "temp").mkdir()
        return Extension(**json.loads(answer.read_text()))
    extension = read_setup(folder, work, log, variables, name=MODULE)
    if extension:
        answer.parent.mkdir(parents=True, exist_ok=True)
        made = work / answer.name
        made.write_text(json.dumps(asdict(extension)))
        made.replace(answer)
    return extension


def _library(folder: Path) -> Path:
    return next(folder.rglob("_C*.so"), folder / nvcc.RESULT)


def folder_key(folder: Path, target: str, quick: bool = False, settings: Mapping[str, str] | None = None) -> str:
    """A hash of everything that a build depends on."""
    import torch

    parts = [
        f"{target} quick" if quick else target,
        torch.__version__,
        sys.version,
        describe_compiler() or "",
    ]
    if target in ("cuda", "compile-only"):
        parts.append(nvcc.nvcc_version())
    if target == "cuda":
        parts.append(nvcc.gpu_architectures())
    key = Key(*parts).add_variables(COMPILER_VARIABLES, {**os.environ, **(settings or {})})
    if target == "emulator":
        key.add(fingerprint())
    csrc = (path for path in (folder / "csrc").rglob("*") if path.is_file())
    return key.add_files([folder / "setup.py", *csrc], folder).text
