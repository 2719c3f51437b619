"""What nvcc says of a source that the emulator is tested with, which shows that the tests are about CUDA."""

from __future__ import annotations

import subprocess
from pathlib import Path

from common.build.nvcc import find_nvcc


def compile_with_nvcc(source: Path, folder: Path, *options: str, architecture: str = "sm_90"):
    """Compiles a source to an object in `folder` and returns the finished process, with its output as text."""
    command = [find_nvcc(), "-std=c++17", f"-arch={architecture}", *options, "-dc", source, "-o", folder / "object"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)
