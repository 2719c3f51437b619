"""Small kernels whose counts were worked out by hand: what the emulator and Nsight Compute are held against.

They are in tests/cpp/counts/patterns.cu, a plain CUDA program that launches each of them once.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from . import architectures, build, emulate, results
from .counts import Counted, read
from .errors import UserError
from .stages import ROOT

PATTERNS = ROOT / "tests" / "cpp" / "counts" / "patterns.cu"


def source_hash() -> str:
    """A hash of the patterns without their comments."""
    return hashlib.sha256(results.cpp_code(PATTERNS.read_text()).encode()).hexdigest()


def by_hand(source: Path = PATTERNS) -> dict[str, dict[str, dict[str, int]]]:
    """The counts of each kernel of a file as its comment gives them, by space and number, in order."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    lines: dict[str, dict[str, int]] = {}
    for line in source.read_text().splitlines():
        if said := re.match(r"// by hand: (\w+ \w+): (.*)", line):
            lines[said[1]] = {what: int(number) for number, what in re.findall(r"(\d+) (\w+)", said[2])}
        elif kernel := re.search(r"__global__ void (\w+)", line):
            found[kernel[1]], lines = lines, {}
    return found


def counted(source: Path = PATTERNS, **environment: str) -> Counted:
    """The program of a file, built and run on the emulator."""
    with tempfile.TemporaryDirectory() as work:
        program, path = emulate.build(str(source), Path(work)), Path(work) / "counts.json"
        environment = {**os.environ, **environment, "EMULATOR_COUNTS": str(path)}
        done = subprocess.run([program], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise UserError(f"{results.shown(source)} fails on the emulator.\n{done.stdout}{done.stderr}")
        return read(path, Path.cwd())


def compiled() -> Path:
    """The patterns as a program for the GPU."""
    program = build.BUILD / "ncu" / PATTERNS.stem
    program.parent.mkdir(parents=True, exist_ok=True)
    architecture = architectures.of_gpus().split(";")[0].replace(".", "").partition("+")[0]
    flags = ["-std=c++17", f"-arch=sm_{architecture}", "-o", str(program)]
    done = subprocess.run([architectures.nvcc(), *flags, str(PATTERNS)], capture_output=True, text=True)
    if done.returncode:
        errors = build.first_errors(done.stdout + done.stderr)
        raise UserError(f"{results.shown(PATTERNS)} does not compile.\n{errors}")
    return program
