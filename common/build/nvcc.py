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

from ..emulator import Extension, version_text

JOBS = 2
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
    """Compiles every .cu for each architecture; `work/architectures.json` then holds the seconds that each took.

    The first one is compiled alone and with its host code, so that an ordinary mistake is reported only once.
    """
    import torch

    kernels = [source for source in extension.sources if source.endswith(".cu")]
    # torch compiles as C++20 from 2.12 on.
    standard = "-std=c++20" if torch.torch_version.TorchVersion(torch.__version__) >= (2, 12) else "-std=c++17"
    flags = [*extension.nvcc_defaults, *extension.defines, *(f"-I{path}" for path in extension.include_dirs)]
    flags += ["--compiler-options", "-fPIC", *extension.nvcc]
    flags += [] if any(flag.startswith("-std=") for flag in extension.nvcc) else [standard]

    def compile_for(architecture: str, what: str) -> tuple[str, float | None, str]:
        start, said = time.perf_counter(), ""
        for number, source in enumerate(kernels):
            output = work / "temp" / f"{number}.{architecture}"
            command = [find_nvcc(), what, f"-arch={architecture}", *flags, source, "-o", str(output)]
            done = subprocess.run(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=[lock]
            )
            said += done.stdout
            if done.returncode != 0:
                return architecture, None, f"{said}error: {source} does not compile for {architecture}\n"
        return architecture, round(time.perf_counter() - start, 2), said

    if not extension.architectures:
        log.write("error: this nvcc and this torch have no architecture in common\n")
        return False
    results = [compile_for(extension.architectures[0], "-c")]
    if results[0][1] is not None:
        with ThreadPoolExecutor(JOBS) as pool:
            results += pool.map(lambda name: compile_for(name, "-cubin"), extension.architectures[1:])
    for _, _, said in results:
        log.write(said)
    (work / RESULT).write_text(json.dumps({name: seconds for name, seconds, _ in results}))
    return all(seconds is not None for _, seconds, _ in results)
