"""Nsight Compute's command line: the metrics to count, its output, and the emulator's counts under the same names."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..build import nvcc as architectures
from ..build import targets
from ..emulator import Counted
from ..paths import ROOT

NCU_SECONDS = 300  # for one program: each kernel runs several times under the tool
# What both count, and ncu's name for it. An instruction that a warp executes is a request on the emulator.
OPERATIONS = {"load": "ld", "store": "st", "atomic": "red"}
OF_GLOBAL = {
    "instructions": "smsp__inst_executed_op_global_{}.sum",
    "requests": "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum",
    "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum",
}
OF_SHARED = {
    "instructions": "smsp__inst_executed_op_shared_{}.sum",
    "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum",
}
METRICS = {
    (f"{memory} {use}", what): metric.format(OPERATIONS[use])
    for memory, metrics, uses in (
        ("global", OF_GLOBAL, ("load", "store", "atomic")),
        ("shared", OF_SHARED, ("load", "store")),
    )
    for use in uses
    for what, metric in metrics.items()
}
NUMBERS = {space: [what for key, what in METRICS if key == space] for space, _ in METRICS}
Counts = dict[str, dict[str, int]]  # by space and number: {"global load": {"instructions": 4, ...}}


@dataclass(frozen=True)
class KernelCase:
    """One launch of a stage's kernel at a size, or of a microbenchmark, which has no stage and no size."""

    kernel: str
    stage: int | None = None
    dtype: str = ""
    B: int = 0
    S: int = 0

    @classmethod
    def of(cls, launch: dict) -> KernelCase:
        """The case of a recorded launch."""
        return cls(*(launch[name] for name in ("kernel", "stage", "dtype", "B", "S")))

    @property
    def size(self) -> str:
        """The size as text."""
        return f"B{self.B} S{self.S} {self.dtype}" if self.stage is not None else ""


def missing_requirement() -> str | None:
    """Why ncu cannot run here; None if it can."""
    missing = [name for name, found in (("nvcc", architectures.find_nvcc()), ("ncu", find_ncu())) if not found]
    if missing:
        return f"no {' and no '.join(missing)}; both are parts of the CUDA Toolkit"
    return targets.why_unavailable("cuda") or targets.why_unavailable("emulator")


def find_ncu() -> str | None:
    """The path of ncu, on PATH or beside nvcc; None if it is not installed."""
    nvcc = architectures.find_nvcc()
    beside = str(Path(nvcc).resolve().parent) if nvcc else ""
    return shutil.which("ncu") or shutil.which("ncu", path=beside)


def ncu_version() -> str:
    """The version of ncu."""
    said = subprocess.run([find_ncu(), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version (\S+)", said)
    return found[1] if found else "unknown"


def run_ncu(command: Sequence[str], kernels: Sequence[str]) -> str:
    """Ncu's output about these kernels of a program, with an added last line if it fails."""
    names = f"regex:^({'|'.join(kernels)})$"
    metrics = ",".join(METRICS.values())
    options = ["--target-processes", "all", "--csv", "--print-units", "base", "-k", names, "--metrics", metrics]
    environment = {**os.environ, "LC_ALL": "C"}  # 4,096 and not 4.096
    try:
        done = subprocess.run(
            [find_ncu(), *options, *command],
            cwd=ROOT,
            env=environment,
            timeout=NCU_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace") + f"\nENDED after {NCU_SECONDS} s"
    text = done.stdout.decode(errors="replace")
    return f"{text}\nENDED with status {done.returncode}" if done.returncode else text


def match_launches(cases: Sequence[KernelCase], output: str) -> dict[KernelCase, tuple[Counts | None, str | None]]:
    """Ncu's counts by case, or None and the reason: its own message, or that it saw other launches."""
    launches = list(parse_csv(output).values())
    if not launches:
        return dict.fromkeys(cases, (None, first_error(output)))
    if [name for name, _ in launches] != [case.kernel for case in cases]:
        why = f"ncu saw {len(launches)} launches of the {len(cases)} that were made, or others: {first_error(output)}"
        return dict.fromkeys(cases, (None, why))
    return {case: (group_by_space(values), None) for case, (_, values) in zip(cases, launches, strict=True)}


def parse_csv(output: str) -> dict[str, tuple[str, dict[str, int]]]:
    """The kernel's name and the metrics of each launch, by its number, from the CSV lines in ncu's output."""
    lines = output.splitlines()
    head = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches: dict[str, tuple[str, dict[str, int]]] = {}
    for row in csv.DictReader(line for line in lines[head:] if line.startswith('"')):
        name = re.search(r"(\w+)(?=[<(]|$)", row["Kernel Name"])[1]
        _, values = launches.setdefault(row["ID"], (name, {}))
        if number := re.fullmatch(r"([\d,]+)(\.0+)?", row["Metric Value"] or ""):
            values[row["Metric Name"]] = int(number[1].replace(",", ""))
    return launches


def group_by_space(values: dict[str, int]) -> Counts:
    """The metrics under our own names, without memory spaces that were not used."""
    found: Counts = {}
    for (space, what), metric in METRICS.items():
        if metric in values:
            found.setdefault(space, {})[what] = values[metric]
    return {space: numbers for space, numbers in found.items() if any(numbers.values())}


def first_error(output: str) -> str:
    """The first error or warning of ncu, or its last line."""
    lines = [line.strip("= ").strip() for line in output.splitlines() if line.strip("= ")]
    said = [line for line in lines if line.startswith(("ERROR", "WARNING"))] or lines[-1:] or ["no output"]
    return re.sub(r"^(ERROR|WARNING)\W*", "", said[0])[:200]


def kernel_counts(counted: Counted, kernel: str) -> Counts:
    """A kernel's counts, by space; spaces that it does not use are left out."""
    spaces = [space for space in NUMBERS if counted.total("requests", kernel, space)]
    return {
        space: {what: counted.total(emulator_name(what), kernel, space) for what in NUMBERS[space]}
        for space in spaces
    }


def emulator_name(what: str) -> str:
    """The emulator's name for a number."""
    return "requests" if what == "instructions" else what
