"""What bounds a step of a sequence on this GPU: barriers, exchanges between blocks, and products.

`make sequence-limits` builds step_limits.cu with nvcc, runs it and records the lines that it prints in
docs/results/studies/sequence_limits.json.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import torch

from ... import console, stages
from ...build import nvcc
from ...emulator import first_errors
from ...errors import UserError
from ...paths import display_path
from ...results import records, sources
from . import STUDY

SOURCE = Path(__file__).with_name("step_limits.cu")


def measure_limits(path: Path) -> dict:
    """Builds and runs the program, and writes the record. Raises `UserError` if one of them fails."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / SOURCE.stem)
        with console.step("build step_limits.cu"):
            run(nvcc.find_nvcc(), "-O3", "-std=c++17", "-arch=sm_90a", str(SOURCE), "-o", program)
        with console.step("measure"):
            lines = run(program).splitlines()
    record = records.start_record(hash_limits()) | {"rows": [json.loads(line) for line in lines]}
    records.save(record, path)
    return record


def run(*command: str) -> str:
    """The output of a command. Raises `UserError` if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{Path(command[0]).name} fails.\n{first_errors(done.stdout + done.stderr)}")
    return done.stdout


def hash_limits() -> str:
    """A hash of the program and of the stage's headers that it includes, without their comments."""
    folder = stages.get_stage(7).folder / "csrc" / "persistent"
    return sources.hash_code([SOURCE, folder / "chain.cuh", folder / "product.cuh"])


def record_limits(output: str | None = None) -> int:
    """Measures the limits, writes the record (by default in docs/results/studies/) and prints it; always 0."""
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (9, 0):
        raise UserError("the limits are those of a GPU with clusters (sm_90), and torch finds none here")
    path = STUDY.record("limits", output)
    record = measure_limits(path)
    for row in record["rows"]:
        facts = ", ".join(f"{name} {value}" for name, value in row.items() if name not in ("name", "ns"))
        console.say(f"{row['ns']:6.0f} ns  {row['name']}, {facts}")
    console.say(f"Written to {display_path(path.absolute())}.")
    return 0
