"""Builds a folder's C++ for the CPU, quickly: it shares objects and compiled headers, and optimises little.

This is for exercises; measured code is built by its own setup.py (library.py).
"""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path
from typing import IO

from .. import emulator
from ..emulator import Cache, Extension, Job

FLAGS = ("-O1", "-g0", "-fPIC", "-fwrapv", "-Wall", "-fdiagnostics-show-caret", "-fmax-errors=5")


def cpp_standard() -> str:
    """The C++ standard that torch itself is built with, as a compiler flag."""
    import torch

    return "-std=c++20" if torch.torch_version.TorchVersion(torch.__version__) >= (2, 12) else "-std=c++17"


def build_for_host(folder: Path, extension: Extension, work: Path, cache: Cache, log: IO[str], lock: int) -> bool:
    """Builds `work/_C.so` from a folder; False if g++ fails, and then `log` has its messages.

    Objects and torch's compiled headers are kept in `cache`.
    """
    temp = work / "temp"
    own = [folder / path for path in extension.include_dirs if not Path(path).is_absolute()]
    others = [path for path in extension.include_dirs if Path(path).is_absolute()]
    others.append(sysconfig.get_paths()["include"])
    # System headers, so that the learner sees no warnings from torch's headers.
    include = [*(f"-I{path}" for path in own), *(flag for path in others for flag in ("-isystem", str(path)))]
    flags = [*extension.defines, *include, cpp_standard(), *FLAGS, *extension.cxx, f"-ffile-prefix-map={folder}=."]
    version = f"torch {emulator.torch_version()}"
    jobs = [Job(folder / source, flags, folder, version) for source in extension.sources]
    jobs = [emulator.precompile_headers(job, cache, lock) for job in jobs]
    made = emulator.compile_objects(jobs, own, cache, temp, lock)
    for _, said in made:
        log.write(said)
    if any(path is None for path, _ in made):
        return False
    command = [*emulator.compiler_command(), "-shared", *(str(path) for path, _ in made), "-o", str(work / "_C.so")]
    command += [*(f"-L{path}" for path in extension.library_dirs if (folder / path).exists())]
    command += [*(f"-l{name}" for name in extension.libraries), *extension.link_args]
    log.flush()
    return subprocess.run(command, cwd=folder, stdout=log, stderr=log, pass_fds=[lock]).returncode == 0
