"""Builds a stage with its own setup.py, or what that asks for with the emulator; keeps what was built; imports it.

A build lives in `build/PACKAGE-TARGET/KEY/`, where KEY is a hash of everything that goes into it: sources, flags,
compiler and versions. It is made in a folder beside that and renamed at the end, under a lock that the system
drops when its holders die, so a build that is killed leaves nothing that the next one could mistake for a result.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import IO

from . import architectures, host, objects, stages
from .cache import BUILD, kept
from .emulator import compile as emulator
from .errors import UserError
from .extension import Extension, read_setup
from .pruning import used
from .stages import ROOT, Stage

# Variables that change what a compiler makes.
FLAGS = (
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "CUDA_HOME",
    "TORCH_CUDA_ARCH_LIST",
    "NVCC_APPEND_FLAGS",
)


@dataclass(frozen=True)
class Build:
    """A built extension: the library, the seconds that compiling took, and whether it was there already.

    Of `compile-only` nothing is loaded: `path` is a JSON of the seconds that each architecture took.
    """

    path: Path
    seconds: float
    cached: bool


def unavailable(target: str) -> str | None:
    """Why this machine cannot run a target, and what would; None when it can."""
    if target == "host":
        return None if compiler() else "no C++ compiler; `make doctor` says what to install"
    if target == "cuda":
        import torch

        if not torch.cuda.is_available():
            return "no GPU that torch can use; `make doctor` says why"
    if target in ("cuda", "compile-only"):
        return None if architectures.nvcc() else "no nvcc; `make doctor` says what to install"
    if target == "emulator":
        if emulator.knows_cpp20(compiler()):
            return None
        return "no C++ compiler that knows C++20 (g++ 11 or newer); `make doctor` says what to install"
    raise UserError(f"there is no target {target!r}; the targets are cuda, host, emulator and compile-only")


def choose(stage: Stage, target: str | None) -> str:
    """The target that was asked for, or the first of the stage's that this machine can run.

    Raises `UserError` when the stage has no such target, or none that can run here, with the reasons.
    """
    if target not in (None, *stage.targets):
        raise UserError(f"stage {stage.number} has no target {target!r}; it has {', '.join(stage.targets)}")
    if target:
        return target
    if not has_cpp(stage):
        return stage.targets[0]
    reasons = {target: unavailable(target) for target in stage.targets}
    for target, reason in reasons.items():
        if reason is None:
            return target
    listed = "; ".join(f"{target}: {reason}" for target, reason in reasons.items())
    raise UserError(f"stage {stage.number} cannot run on this machine. {listed}")


def choose_all(stage: Stage, target: str | None) -> list[str]:
    """What to check here, the best first: the target that was asked for, or one for each code that a stage has.

    Code for CUDA is checked on a GPU, or else on the emulator; code for CPUs beside it. Raises as `choose` does.
    """
    best = choose(stage, target)
    if target or not has_cpp(stage):
        return [best]
    others = ["host"] if best == "cuda" else ["emulator"] if best == "host" else []
    return [best, *(other for other in others if other in stage.targets and unavailable(other) is None)]


def devices(stage: Stage, target: str) -> list[str]:
    """Where the tensors of a stage live on a target. ATen code (stages 1 and 2) runs on both kinds of device."""
    import torch

    if target == "cuda":
        return ["cuda"]
    if target == "host" and stage.targets == stages.HOST and torch.cuda.is_available():
        return ["cpu", "cuda"]
    return ["cpu"]


def has_cpp(stage: Stage) -> bool:
    """Whether there is anything to build."""
    return (stage.folder / "setup.py").exists()


def load(number: int, target: str | None = None) -> ModuleType:
    """The module `lltm.py` of a stage, its `_C` built and imported first. See `common.load`."""
    stage = stages.get(number)
    target = choose(stage, target)
    name = module_of(stage, target)
    if name not in sys.modules:
        _import(stage, target)
    return sys.modules[name]


def module_of(stage: Stage, target: str) -> str:
    """The module that `load` returns: `lltm` of the stage's package, and for a primer the package itself."""
    package = package_of(stage, target)
    return package if stage.kind == "primer" else f"{package}.lltm"


def package_of(stage: Stage, target: str) -> str:
    """What a stage is imported as: its own name for the best target here, and that with the target for others."""
    return stage.package if target == choose(stage, None) else f"{stage.package}_{target}"


def _import(stage: Stage, target: str) -> None:
    """Imports the stage's folder as a package, with the built `_C` where `from . import _C` will find it."""
    library = build(stage, target).path if has_cpp(stage) else None
    package = package_of(stage, target)
    import_folder(package, stage.folder, library, f"stage {stage.number}")
    sys.modules[module_of(stage, target)].TARGET = target


def import_folder(package: str, folder: Path, library: Path | None, what: str) -> ModuleType:
    """Imports a folder as a package, a library as its `_C`; its module `lltm`, if there is one, or the package.

    `what` is what messages call it. Raises `UserError` for a library that does not load.
    """
    if library:
        import torch  # noqa: F401  (first: the extension is linked against its libraries)

        name = f"{package}._C"
        loader = importlib.machinery.ExtensionFileLoader(name, str(library))
        spec = importlib.util.spec_from_file_location(name, str(library), loader=loader)
        try:
            sys.modules[name] = importlib.util.module_from_spec(spec)
            loader.exec_module(sys.modules[name])
        except ImportError as error:  # a symbol that nothing defines shows only now
            sys.modules.pop(name, None)
            raise UserError(f"{what} builds, but does not load: {readable(str(error))}") from None
    spec = importlib.util.spec_from_file_location(
        package, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    made = sys.modules[package] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except BaseException:
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]
        raise
    return sys.modules.get(f"{package}.lltm", made)


def build(stage: Stage, target: str) -> Build:
    """Builds the extension of a stage for a target, or finds it built. Raises `UserError` when it does not build."""
    return build_folder(stage.folder, target, BUILD / f"{stage.package}-{target}", f"stage {stage.number}")


def build_folder(folder: Path, target: str, place: Path, name: str, quick: bool = False) -> Build:
    """Builds the extension of any folder like a stage's, or finds it in `place`, where builds are kept by content.

    `name` is what messages call it. `quick` shares objects and torch's headers with all that is built so: an edit is
    built in seconds, but for `host` without the flags of setup.py's own build. Raises `UserError` as `build` does.
    """
    if reason := unavailable(target):
        raise UserError(f"cannot build {name} for {target}: {reason}")
    final = used(kept(place / key_of(folder, target, quick)))
    if not final.exists():
        try:
            with _lock(place) as lock:
                for left_behind in place.glob("*.unfinished"):  # by a build that was killed
                    shutil.rmtree(left_behind)
                if not final.exists():
                    return _build(folder, target, final, name, quick, lock)
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"cannot build {name} in {os.path.relpath(place)}: {reason}") from None
    return Build(_library(final), json.loads((final / "build.json").read_text())["seconds"], cached=True)


def _build(folder: Path, target: str, final: Path, name: str, quick: bool, lock: int) -> Build:
    """Builds in a folder beside the final one. The compilers hold the lock too, and so outlive a killed builder."""
    work = final.with_suffix(".unfinished")
    work.mkdir()
    start = time.perf_counter()
    try:
        with (work / "log.txt").open("w") as log:
            made = _make(folder, target, work, quick, log, lock)
    except UserError as error:
        shutil.rmtree(work)
        raise UserError(f"{name} does not build.\n  {error}") from None
    seconds = round(time.perf_counter() - start, 2)
    if not made:
        failed = final.parent / "failed.log"
        (work / "log.txt").replace(failed)
        shutil.rmtree(work)
        errors = first_errors(failed.read_text(errors="replace"))
        raise UserError(f"{name} does not build.\n{errors}\nAll of it: {os.path.relpath(failed)}")
    shutil.rmtree(work / "temp", ignore_errors=True)
    (work / "build.json").write_text(json.dumps({"seconds": seconds}))
    work.rename(final)
    return Build(_library(final), seconds, cached=False)


def _make(folder: Path, target: str, work: Path, quick: bool, log: IO[str], lock: int) -> bool:
    """Whether the folder could be built into `work`; the log says what went wrong if not."""
    variables = variables_of(target, work.parent)
    if target == "cuda" or (target == "host" and not quick):
        options = ["--build-temp", str(work / "temp"), "--build-lib", str(work)]
        command = [sys.executable, "setup.py", "-q", "build_ext", *options]
        environment = {"MAX_JOBS": str(os.cpu_count() or 1), **os.environ, **variables}
        if target == "cuda":
            environment["TORCH_CUDA_ARCH_LIST"] = architectures.of_gpus()
        run = subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, pass_fds=[lock])
        return run.returncode == 0
    if target == "compile-only":
        extension = read_setup(folder, work, log, variables, architectures.offered())
        return extension is not None and architectures.build(folder, extension, work, log, lock)
    extension = (read_setup_once if quick else read_setup)(folder, work, log, variables)
    if extension is None:
        return False
    headers = BUILD / "headers"
    if target == "host":
        return host.build(folder, extension, work, BUILD / "objects", headers, log, lock)
    return emulator.build(folder, extension, work, BUILD / "objects", log, lock, headers if quick else None)


def variables_of(target: str, place: Path) -> dict[str, str]:
    """What a setup.py may ask the environment: whether CUDA code is wanted, and a namespace that no other build has.

    For a library that registers operators: several targets of a stage may be loaded in one process.
    """
    return {"USE_CUDA": str(int(target != "host")), "LLTM_NAMESPACE": re.sub(r"\W", "_", place.name)}


def read_setup_once(folder: Path, work: Path, log: IO[str], variables: dict[str, str]) -> Extension | None:
    """What a setup.py asks for, asked only once for each text of it and each set of sources' names."""
    import torch

    names = sorted(str(path.relative_to(folder)) for path in (folder / "csrc").rglob("*"))
    parts = [
        (folder / "setup.py").read_text(errors="replace"),
        torch.__version__,
        torch.__file__,
        sys.version,
        *variables.values(),
        *names,
    ]
    answer = kept(BUILD / "setups" / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:20]}.json")
    if answer.exists():
        (work / "temp").mkdir()
        return Extension(**json.loads(answer.read_text()))
    extension = read_setup(folder, work, log, variables)
    if extension:
        answer.parent.mkdir(parents=True, exist_ok=True)
        made = answer.with_suffix(f".{os.getpid()}")
        made.write_text(json.dumps(asdict(extension)))
        made.replace(answer)
    return extension


def first_errors(log: str) -> str:
    """What a compiler's output says is wrong: at most ten lines, each with the line of the source below it.

    Its last lines when none says so.
    """
    says = re.compile(r"\b(error|Error|fatal|undefined|Killed|No space)\b")
    noise = ("ninja: ", "subprocess.CalledProcessError", "RuntimeError: Error", "Error building extension", "FAILED:")
    rows, found = log.splitlines(), []
    for k, row in enumerate(rows):
        if says.search(row) and not row.startswith(noise) and len(found) < 10:
            found.append(row)
            found += [below for below in rows[k + 1 : k + 3] if re.match(r"\s*\d* \| ", below)]
    return "\n".join(f"  {row}" for row in found or log.strip().splitlines()[-10:])


def readable(message: str) -> str:
    """A message with the names of C++ functions as they are written in the source."""
    if not shutil.which("c++filt"):
        return message
    return subprocess.run(["c++filt"], input=message, capture_output=True, text=True).stdout.strip()


def _library(folder: Path) -> Path:
    return next(folder.rglob("_C*.so"), folder / architectures.RESULT)


def key(stage: Stage, target: str) -> str:
    """A hash of all that a stage's build depends on."""
    return key_of(stage.folder, target)


def key_of(folder: Path, target: str, quick: bool = False) -> str:
    """A hash of all that a build depends on."""
    import torch

    parts = [
        f"{target} quick" if quick else target,
        torch.__version__,
        sys.version,
        compiler() or "",
        *(f"{name}={os.environ.get(name)}" for name in FLAGS),
    ]
    if target in ("cuda", "compile-only"):
        parts.append(architectures.nvcc_version())
    if target == "cuda":
        parts.append(architectures.of_gpus())
    digest = hashlib.sha256("\0".join(parts).encode())
    if target == "emulator":
        digest.update(emulator.fingerprint())
    sources = [path for path in (folder / "csrc").rglob("*") if path.is_file()]
    for path in sorted([folder / "setup.py", *sources]):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def compiler() -> str | None:
    """The C++ compiler that torch will call, with its version; None if there is none."""
    name = objects.compiler()[-1]
    return f"{name}: {_first_line(name, '--version')}" if shutil.which(name) else None


def _first_line(*command: str) -> str:
    shown = subprocess.run(command, capture_output=True, text=True).stdout
    return shown.strip().partition("\n")[0]


@contextmanager
def _lock(folder: Path) -> Iterator[int]:
    """One builder at a time; a second one waits. The system drops the lock when all who hold it have ended."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def clean() -> int:
    """Removes build/ and out/: all that commands have made, and nothing of a learner's."""
    for folder in (BUILD, ROOT / "out"):
        shutil.rmtree(folder, ignore_errors=True)
    return 0
