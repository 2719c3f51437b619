"""Reads the sources, flags and libraries in a setup.py without building anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# Runs setup.py up to the point where the build would begin. Only torch knows which architectures it supports.
READER = """
import json, os, re, sys
import setuptools, distutils.core
answer, wanted, claims_gpu, offered = sys.argv[1], sys.argv[2], sys.argv[3] == "1", sys.argv[4:]
if claims_gpu:
    import torch
    torch.cuda.is_available = lambda: True
setup = distutils.core.run_setup("setup.py", ["build_ext"], stop_after="init")
extensions = [e for e in setup.ext_modules or [] if wanted in ("", e.name, e.name.split(".")[-1])]
if not extensions:
    sys.exit("error: setup.py has no extension" + (f" whose name ends in {wanted}" if wanted else ""))
if len(extensions) > 1 and not wanted:
    names = ", ".join(e.name for e in extensions)
    sys.exit(f"error: setup.py has {len(extensions)} extensions, {names}: name one of them")
extension = extensions[0]
flags = extension.extra_compile_args or []
flags = flags if isinstance(flags, dict) else {"cxx": flags, "nvcc": flags}

defaults, architectures = [], []
if offered:
    from torch.utils import cpp_extension
    defaults = cpp_extension.COMMON_NVCC_FLAGS
    given = os.environ.get("TORCH_CUDA_ARCH_LIST")
    for name in [given] if given else offered:
        os.environ["TORCH_CUDA_ARCH_LIST"] = name
        try:
            architectures += re.findall("code=(sm_[0-9a-z]+)", " ".join(cpp_extension._get_cuda_arch_flags()))
        except ValueError:
            pass  # newer, or older, than this torch

json.dump({
    "name": extension.name,
    "sources": [str(source) for source in extension.sources],
    "include_dirs": extension.include_dirs,
    "macros": [[name, value] for name, value in extension.define_macros],
    "cxx": flags.get("cxx", []),
    "nvcc": flags.get("nvcc", []),
    "libraries": extension.libraries,
    "library_dirs": extension.library_dirs,
    "link_args": extension.extra_link_args,
    "nvcc_defaults": defaults,
    "architectures": architectures,
}, open(answer, "w"))
"""


@dataclass(frozen=True)
class Extension:
    """An extension module as setup.py describes it; paths are relative to its folder or absolute."""

    name: str  # such as `package._C`
    sources: list[str]
    include_dirs: list[str]
    macros: list[tuple[str, str | None]]
    cxx: list[str]  # flags for g++
    nvcc: list[str]  # flags for nvcc
    libraries: list[str]
    library_dirs: list[str]
    link_args: list[str]
    nvcc_defaults: list[str]  # flags that torch adds for nvcc
    architectures: list[str]  # such as `sm_90`

    @property
    def module(self) -> str:
        """The name of the module without its package."""
        return self.name.rpartition(".")[2]

    @property
    def defines(self) -> list[str]:
        """The macros as flags, with those that torch's own build adds."""
        given = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in self.macros]
        return [*given, f"-DTORCH_EXTENSION_NAME={self.module}", "-DTORCH_API_INCLUDE_EXTENSION_H"]


def read_setup(
    folder: Path,
    work: Path,
    log: IO[str],
    variables: dict[str, str],
    offered: Sequence[str] = (),
    name: str | None = None,
    claims_gpu: bool = False,
) -> Extension | None:
    """Runs the setup.py of a folder in its own process. Returns None if that fails; `log` then contains the reason.

    `name` selects one of several extensions, with or without its package. `variables` are added to the environment.
    `offered` are the architectures that nvcc supports, such as `9.0`; the result contains those that torch supports,
    too. With `claims_gpu`, `torch.cuda.is_available()` is true for setup.py. Without `offered`, no CUDA Toolkit is
    needed: CUDAExtension needs only the name of its folder, and does not check whether it exists.
    """
    answer = work / "temp" / "setup.json"
    answer.parent.mkdir()
    command = [sys.executable, "-c", READER, str(answer), name or "", str(int(claims_gpu)), *offered]
    environment = {**os.environ, **variables} | ({} if offered else {"CUDA_HOME": "/no/cuda"})
    if subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log).returncode != 0:
        return None
    return Extension(**json.loads(answer.read_text()))
