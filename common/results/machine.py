"""Describes where a measurement was made: the machine and the versions, but never the host name."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

import torch


def describe_machine() -> dict[str, object]:
    """CPU, cores, memory, and GPU with its clocks in MHz and its driver; None for what is not there."""
    facts: dict[str, object] = {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "gpu": None,
        "gpu_memory_gib": None,
        "gpu_clocks_mhz": None,
        "driver": None,
    }
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        facts |= {"gpu": properties.name, "gpu_memory_gib": round(properties.total_memory / 2**30, 1)}
        facts |= nvidia_smi()
    return facts


def collect_versions() -> dict[str, str | None]:
    """The versions of all that takes part in a measurement; None for what is not there."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": cudnn_version(),
        "g++": first_version(["g++", "-dumpfullversion"]),
        "nvcc": first_version(["nvcc", "--version"], after="release "),
    }


def cpu_model() -> str:
    """The name that the processor gives itself."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def cudnn_version() -> str | None:
    """CuDNN's version as torch sees it, such as '9.10.2'."""
    if not torch.cuda.is_available():
        return None
    number = torch.backends.cudnn.version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}" if number else None


def nvidia_smi() -> dict[str, object]:
    """The driver, and the clocks as nvidia-smi reads them now, beside the highest that they can reach."""
    query = "driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    values = read_output(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "--id=0"]).split(
        ", "
    )
    if len(values) != 5:
        return {}
    driver, *clocks = values
    names = ("sm", "memory", "sm_max", "memory_max")
    numbers = [int(clock) if clock.strip().isdigit() else None for clock in clocks]
    return {"driver": driver, "gpu_clocks_mhz": dict(zip(names, numbers, strict=True))}


def first_version(command: list[str], after: str = "") -> str | None:
    """The first version that a program prints behind `after`; None if there is no such program."""
    found = re.search(re.escape(after) + r"(\d+(?:\.\d+)+|\d+)", read_output(command))
    return found[1] if found else None


def read_output(command: list[str]) -> str:
    """What a program prints; empty if it is not there or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
