"""Builds stage 8's program with CMake and caches it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from .. import stages
from ..emulator import build_once, describe_compiler, first_errors, launcher, max_jobs
from ..errors import UserError
from ..key import Key
from ..paths import ROOT, build_cache, display_path

NAME, STABLE_OPERATORS = "lltm_serve", "lltm_operators.so"
FOLDER = stages.find_stage(8).folder
CELLS = [stages.find_stage(7).folder / "csrc" / name for name in ("cells.h", "gate_math.h")]
NAMESPACE = "lltm_stage7_host"  # of the operators that a package calls: those of stage 7's `host` build


class MissingPackage(UserError):
    """What builds the program is not installed. Only this stage needs it, so the tour goes on without the stage."""


def why_unavailable() -> str | None:
    """Why the program cannot be built here, with the fix; None if it can. CMake finds missing headers by itself."""
    if not shutil.which("cmake"):
        return "no cmake: sudo apt install cmake"
    return None if describe_compiler() else "no C++ compiler; `make doctor` says what to install"


def build_program(folder: Path = FOLDER) -> Path:
    """The program that a folder's CMakeLists.txt describes.

    Raises `UserError` if it does not build, and `MissingPackage` if CMake, a compiler or a library is not installed.
    """
    if reason := why_unavailable():
        raise MissingPackage(f"cannot build {NAME}: {reason}")
    final = build_cache().find(NAME, program_key(folder))
    build_once(final, lambda work, lock: _build_into(folder, work, lock))
    return final / NAME


def stable_operators() -> Path:
    """The library of the operators in torch's stable ABI, which is built with the program."""
    return build_program().parent / STABLE_OPERATORS


def program_key(folder: Path) -> str:
    """A hash of everything that the program depends on, the library in the stable ABI included."""
    import torch

    key = Key(torch.__version__, torch.__file__, describe_compiler() or "")
    key.add_variables(("CXX", "CXXFLAGS", "LDFLAGS"))
    paths = [folder / "CMakeLists.txt", *(folder / "csrc").rglob("*"), *(folder / "stable_abi").glob("*.cpp")]
    return key.add_files(filter(Path.is_file, paths), folder).add_files(CELLS, ROOT).text


def _build_into(folder: Path, work: Path, lock: int) -> None:
    """Builds in `work/temp`, and copies the program to `work`. The compilers hold the lock, too."""
    import torch

    temp, log_path = work / "temp", work / "log.txt"
    commands = [
        [
            "cmake",
            "-S",
            str(folder),
            "-B",
            str(temp),
            f"-DCMAKE_PREFIX_PATH={torch.__path__[0]}",
            f"-DLLTM_NAMESPACE={NAMESPACE}",
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(launcher())}",
        ],
        ["cmake", "--build", str(temp), "--parallel", str(max_jobs())],
    ]
    with log_path.open("w") as log:
        built = all(
            subprocess.run(command, stdout=log, stderr=log, pass_fds=[lock]).returncode == 0 for command in commands
        )
    if not built:
        failed = work.parent / "failed.log"
        log_path.replace(failed)
        log_text = failed.read_text()
        if missing := _missing(log_text):
            raise MissingPackage(missing)
        raise UserError(f"{NAME} does not build.\n{first_errors(log_text)}\nAll of it: {display_path(failed)}")
    for name in (NAME, STABLE_OPERATORS):
        if (temp / name).exists():  # an exercise has only a part of the CMake file
            shutil.copy(temp / name, work / name)


def _missing(log: str) -> str | None:
    """What is missing, and how to install it, in the words of CMakeLists.txt; None if nothing is."""
    needs = re.search(rf"{NAME} needs .*(?:\n\s+\S.*)*", log)
    return " ".join(needs[0].split()) if needs else None
