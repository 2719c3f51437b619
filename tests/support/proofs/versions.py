"""The versions and the GPU for which a proof is valid. With any other one it runs again."""

from __future__ import annotations

import platform

import torch

from common.build import nvcc
from common.emulator import describe_compiler


def versions() -> str:
    """Python without its patch release, torch, the compilers and the GPU, in one line."""
    cuda = nvcc.nvcc_version().strip().splitlines()[-1] if nvcc.find_nvcc() else "no nvcc"
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    python = f"Python {'.'.join(platform.python_version_tuple()[:2])} on {platform.machine()}"
    return ", ".join((python, f"torch {torch.__version__}", describe_compiler() or "no C++ compiler", cuda, gpu))
