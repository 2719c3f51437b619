"""nvcc and its architectures; the target `compile-only`, which compiles a stage for all of them without a GPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from ..emulator import Extension, hold_job, max_jobs, version_text
from .host import cpp_standard

RESULT = "architectures.json"


def find_nvcc() -> str | None:
    """The path of CUDA's compiler, searched in the same places as torch does; None if there is none."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return shutil.which("nvcc", path=f"{home}/bin")
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def nvcc_version() -> str:
    """The version text of nvcc."""
    return version_text(find_nvcc())


def supported_architectures() -> list[str]:
    """The architectures that nvcc can compile for, such as `9.0`."""
    listed = subprocess.run([find_nvcc(), "--list-gpu-arch"], capture_output=True, text=True).stdout
    return [f"{number[:-1]}.{number[-1]}" for number in re.findall(r"compute_(\d+)\b", listed)]


def gpu_architectures() -> str:
    """The architectures to compile for: `TORCH_CUDA_ARCH_LIST`, or those of this machine's GPUs, such as `9.0`."""
    import torch

    here = {torch.cuda.get_device_capability(device) for device in range(torch.cuda.device_count())}
    return os.environ.get("TORCH_CUDA_ARCH_LIST") or ";".join(f"{major}.{minor}" for major, minor in sorted(here))


def compile_for_architectures(folder: Path, extension: Extension, work: Path, log: IO[str], lock: int) -> bool:
    """Compiles every .cu for each architecture; `work/architectures.json` then holds the seconds that each took, as
    the sum over the sources.

    The first one is compiled alone and with its host code, so that an ordinary mistake is reported only once.
    """
    kernels = [source for source in extension.sources if source.endswith(".cu")]
    flags = [*extension.nvcc_defaults, *extension.defines, *(f"-I{path}" for path in extension.include_dirs)]
    flags += ["--compiler-options", "-fPIC", *extension.nvcc]
    flags += [] if any(flag.startswith("-std=") for flag in extension.nvcc) else [cpp_standard()]

    def compile_pair(architecture: str, source: str, what: str) -> tuple[str, float | None, str]:
        output = work / "temp" / f"{kernels.index(source)}.{architecture}"
        command = [find_nvcc(), what, f"-arch={architecture}", *flags, source, "-o", str(output)]
        with hold_job() as held:
            start = time.perf_counter()
            done = subprocess.run(
                command,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=[lock, *held],
            )
        if done.returncode != 0:
            return architecture, None, f"{done.stdout}error: {source} does not compile for {architecture}\n"
        return architecture, time.perf_counter() - start, done.stdout

    if not extension.architectures:
        log.write("error: this nvcc and this torch have no architecture in common\n")
        return False
    first, *others = extension.architectures
    with ThreadPoolExecutor(max_jobs()) as pool:
        results = list(pool.map(lambda source: compile_pair(first, source, "-c"), kernels))
        if all(seconds is not None for _, seconds, _ in results):
            pairs = [(architecture, source) for architecture in others for source in kernels]
            results += pool.map(lambda pair: compile_pair(*pair, "-cubin"), pairs)
    log.writelines(said for _, _, said in results)
    succeeded = all(seconds is not None for _, seconds, _ in results)
    if succeeded:
        totals = dict.fromkeys(extension.architectures, 0.0)
        for architecture, seconds, _ in results:
            totals[architecture] += seconds
        (work / RESULT).write_text(json.dumps({name: round(total, 2) for name, total in totals.items()}))
    return succeeded
