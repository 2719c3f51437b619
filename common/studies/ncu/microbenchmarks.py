"""Small kernels whose counts were worked out by hand: the emulator and Nsight Compute are compared with them.

They are in microbenchmarks.cu, a plain CUDA program that launches each of them once.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from ... import paths
from ...build import nvcc
from ...emulator import Counted, build_program, first_errors, read_counts
from ...errors import UserError
from ...paths import display_path
from ...results import sources

SOURCE = Path(__file__).with_suffix(".cu")


def hash_microbenchmarks() -> str:
    """A hash of the microbenchmarks without their comments."""
    return sources.hash_code([SOURCE])


def read_expected_counts(source: Path = SOURCE) -> dict[str, dict[str, dict[str, int]]]:
    """The counts of each kernel of a file from its comment, by memory space and kind of count, in order."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    lines: dict[str, dict[str, int]] = {}
    for line in source.read_text().splitlines():
        if said := re.match(r"// by hand: (\w+ \w+): (.*)", line):
            lines[said[1]] = {what: int(number) for number, what in re.findall(r"(\d+) (\w+)", said[2])}
        elif kernel := re.search(r"__global__ void (\w+)", line):
            found[kernel[1]], lines = lines, {}
    return found


def count_on_emulator(source: Path = SOURCE, **environment: str) -> Counted:
    """Builds and runs the program of a file on the emulator."""
    with tempfile.TemporaryDirectory() as work:
        program, path = build_program(str(source), Path(work), paths.build_cache()), Path(work) / "counts.json"
        environment = {**os.environ, **environment, "EMULATOR_COUNTS": str(path)}
        done = subprocess.run([program], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise UserError(f"{display_path(source)} fails on the emulator.\n{done.stdout}{done.stderr}")
        return read_counts(path, Path.cwd())


def compile_for_gpu() -> Path:
    """Builds the microbenchmarks as a program for the GPU."""
    program = paths.build_dir() / "ncu" / SOURCE.stem
    program.parent.mkdir(parents=True, exist_ok=True)
    architecture = nvcc.gpu_architectures().split(";")[0].replace(".", "").partition("+")[0]
    flags = ["-std=c++17", f"-arch=sm_{architecture}", "-o", str(program)]
    done = subprocess.run([nvcc.find_nvcc(), *flags, str(SOURCE)], capture_output=True, text=True)
    if done.returncode:
        errors = first_errors(done.stdout + done.stderr)
        raise UserError(f"{display_path(SOURCE)} does not compile.\n{errors}")
    return program
