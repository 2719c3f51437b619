"""`make ncu`: what Nsight Compute counts for every stage's kernels and for small ones, beside the emulator's counts.

The small ones are those of patterns.py, which have their counts worked out by hand.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import NamedTuple

from . import architectures, build, console, counts, patterns, results, stages
from .errors import UserError
from .stages import ROOT, Stage

KERNELS = ("forward_kernel", "backward_kernel")
SIZES, SMALL_SIZES = ((64, 512), (3, 70)), ((16, 128), (3, 70))  # B, S
DTYPES = ("float32", "float64")
SECONDS = 300  # for one program: each kernel runs several times under the tool

# What both count, and the tool's name for it. An instruction that a warp executes is a request of the emulator's.
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
class Case:
    """One launch: of a stage's kernel at a size, or of a pattern, which has no stage and no size."""

    kernel: str
    stage: int | None = None
    dtype: str = ""
    B: int = 0
    S: int = 0

    @classmethod
    def of(cls, launch: dict) -> Case:
        """The case of a recorded launch."""
        return cls(*(launch[name] for name in ("kernel", "stage", "dtype", "B", "S")))

    @property
    def size(self) -> str:
        """As it is shown."""
        return f"B{self.B} S{self.S} {self.dtype}" if self.stage is not None else ""


def ncu(emulator_only: bool = False, only: int | None = None) -> int:
    """Counts every launch with both and writes docs/results/ncu.json.

    With `emulator_only` the recorded numbers of the tool stay, and no GPU is needed. With the number of one stage,
    what is recorded of the others stays, if it is of this machine and these versions.
    """
    if not emulator_only and (reason := lacking()):
        raise UserError(f"nothing was run: {reason}")
    record = recorded() if emulator_only else new_record()
    chosen = [name for name in programs() if only is None or name.startswith(f"stage {only}")]
    if only is not None and not emulator_only:
        record = results.kept(record, results.PROFILED, chosen)
    before, record["launches"] = {Case.of(launch): launch for launch in record["launches"]}, []
    for name, program in programs().items():
        with console.step(f"{name} on the emulator"):
            found = program.emulated()
        said = {case: (launch["ncu"], launch["refused"]) for case, launch in before.items()}
        if not emulator_only and name in chosen:
            with console.step(f"{name} under ncu"):
                said = answers(list(found), program.profiled())
        for case, ours in found.items():
            theirs, refused = said.get(case, (None, "not run yet"))
            record["launches"].append({**vars(case), "emulator": ours, "ncu": theirs, "refused": refused})
        results.PROFILED.write_text(json.dumps(record, indent=1) + "\n")  # a later program may take the machine along
    from .ncu_table import summary

    console.say(f"  {summary(record)}")
    console.say(f"Written to {results.shown(results.PROFILED)}; `make tables` shows it in docs/results/README.md.")
    return 0


def recorded() -> dict:
    """What docs/results/ncu.json holds; without it, a record of nothing."""
    if results.PROFILED.exists():
        return json.loads(results.PROFILED.read_text())
    return {"date": None, "machine": None, "versions": None, "sources": {}, "launches": []}


def new_record() -> dict:
    """A record without launches, of this machine and of the sources as they are now."""
    from . import machine

    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine.machine(),
        "versions": machine.versions() | {"ncu": version()},
        "sources": {name: program.source_hash() for name, program in programs().items()},
        "launches": [],
    }


def lacking() -> str | None:
    """Why the tool cannot be run here; None when it can."""
    missing = [name for name, found in (("nvcc", architectures.nvcc()), ("ncu", tool())) if not found]
    if missing:
        return f"no {' and no '.join(missing)}; both are parts of the CUDA Toolkit"
    return build.unavailable("cuda") or build.unavailable("emulator")


def tool() -> str | None:
    """Nsight Compute's command line, on the path or beside nvcc; None if it is not there."""
    nvcc = architectures.nvcc()
    beside = str(Path(nvcc).resolve().parent) if nvcc else ""
    return shutil.which("ncu") or shutil.which("ncu", path=beside)


def version() -> str:
    """The tool's own version."""
    said = subprocess.run([tool(), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version (\S+)", said)
    return found[1] if found else "unknown"


class Program(NamedTuple):
    """What is run: a hash of its sources, its launches with the emulator's counts, and what the tool says of them."""

    source_hash: Callable[[], str]
    emulated: Callable[[], dict[Case, Counts]]
    profiled: Callable[[], str]


def programs() -> dict[str, Program]:
    """The small kernels, and each stage's."""
    found = {"patterns": Program(patterns.source_hash, emulated_patterns, profiled_patterns)}
    for stage in stages.cells():
        if stage.pointwise_tensors:
            found[f"stage {stage.number}"] = of_stage(stage, KERNELS)
        if stage.small_kernels:
            found[f"stage {stage.number}, small cells"] = of_stage(stage, stage.small_kernels)
    return found


def of_stage(stage: Stage, names: Sequence[str]) -> Program:
    """The program of these kernels of a stage, which are all that the tool looks at."""
    return Program(
        partial(results.source_hash, stage),
        partial(emulated_stage, stage, names),
        partial(profiled_stage, stage, names),
    )


def emulated_patterns() -> dict[Case, Counts]:
    """The emulator's counts of each pattern, in the order of the file."""
    counted = patterns.counted()
    return {Case(kernel): of_kernel(counted, kernel) for kernel in patterns.by_hand()}


def profiled_patterns() -> str:
    """What the tool says about the patterns."""
    return profile([str(patterns.compiled())], list(patterns.by_hand()))


def profiled_stage(stage: Stage, names: Sequence[str]) -> str:
    """What the tool says about kernels of a stage, built for this machine's GPU."""
    build.build(stage, "cuda")
    return profile([sys.executable, "-m", "common.ncu", str(stage.number), *names], names)


# The launches -------------------------------------------------------------------------------------------------


def launch_all(
    number: int,
    names: Sequence[str],
    target: str,
    around: Callable[[Case], AbstractContextManager] = lambda case: nullcontext(),
) -> None:
    """Launches two kernels of a stage, of its pointwise part or of a small cell, at every size and dtype.

    Each launch, with the other kernels that are launched for its sake, is inside of `around(case)`.
    """
    from . import kernels

    cell = kernels.launcher_of(stages.get(number), names, target)
    for B, S in SIZES if tuple(names) == KERNELS else SMALL_SIZES:
        for dtype in DTYPES:
            given = counts.given(B, S, dtype, "cuda" if target == "cuda" else "cpu")
            forward, backward = (Case(name, number, dtype, B, S) for name in names)
            with around(forward):
                found = cell.forward(given)
            with around(backward):
                cell.backward(given, found)


def emulated_stage(stage: Stage, names: Sequence[str]) -> dict[Case, Counts]:
    """The emulator's counts of each launch of these kernels of a stage."""
    module, found = build.load(stage.number, "emulator"), {}

    @contextmanager
    def around(case: Case) -> Iterator[None]:
        with counts.of(module) as counted:
            yield
        found[case] = of_kernel(counted, case.kernel)

    launch_all(stage.number, names, "emulator", around)
    return found


def of_kernel(counted: counts.Counted, kernel: str) -> Counts:
    """A kernel's counts, by space; spaces that it does not use are left out."""
    spaces = [space for space in NUMBERS if counted.total("requests", kernel, space)]
    return {space: {what: counted.total(name_of(what), kernel, space) for what in NUMBERS[space]} for space in spaces}


def name_of(what: str) -> str:
    """The emulator's name for a number."""
    return "requests" if what == "instructions" else what


# The tool's answers -------------------------------------------------------------------------------------------


def profile(command: Sequence[str], kernels: Sequence[str]) -> str:
    """What the tool writes about these kernels of a program, with a last line of ours when it does not end well."""
    names = f"regex:^({'|'.join(kernels)})$"
    metrics = ",".join(METRICS.values())
    options = ["--target-processes", "all", "--csv", "--print-units", "base", "-k", names, "--metrics", metrics]
    environment = {**os.environ, "LC_ALL": "C"}  # 4,096 and not 4.096
    try:
        done = subprocess.run(
            [tool(), *options, *command],
            cwd=ROOT,
            env=environment,
            timeout=SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace") + f"\nENDED after {SECONDS} s"
    text = done.stdout.decode(errors="replace")
    return f"{text}\nENDED with status {done.returncode}" if done.returncode else text


def answers(cases: Sequence[Case], output: str) -> dict[Case, tuple[Counts | None, str | None]]:
    """By case what the tool counted, or None and why not: its own words, or that its launches are not ours."""
    launches = list(parsed(output).values())
    if not launches:
        return dict.fromkeys(cases, (None, first_error(output)))
    if [name for name, _ in launches] != [case.kernel for case in cases]:
        why = f"ncu saw {len(launches)} launches of the {len(cases)} that were made, or others: {first_error(output)}"
        return dict.fromkeys(cases, (None, why))
    return {case: (by_space(values), None) for case, (_, values) in zip(cases, launches, strict=True)}


def parsed(output: str) -> dict[str, tuple[str, dict[str, int]]]:
    """The name of the kernel and the metrics of each launch, by its number; from lines of CSV among others."""
    lines = output.splitlines()
    head = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches: dict[str, tuple[str, dict[str, int]]] = {}
    for row in csv.DictReader(line for line in lines[head:] if line.startswith('"')):
        name = re.search(r"(\w+)(?=[<(]|$)", row["Kernel Name"])[1]
        _, values = launches.setdefault(row["ID"], (name, {}))
        if number := re.fullmatch(r"([\d,]+)(\.0+)?", row["Metric Value"] or ""):
            values[row["Metric Name"]] = int(number[1].replace(",", ""))
    return launches


def by_space(values: dict[str, int]) -> Counts:
    """The metrics under our own names; spaces of which nothing was counted are left out."""
    found: Counts = {}
    for (space, what), metric in METRICS.items():
        if metric in values:
            found.setdefault(space, {})[what] = values[metric]
    return {space: numbers for space, numbers in found.items() if any(numbers.values())}


def first_error(output: str) -> str:
    """What the tool complains about, or its last words."""
    lines = [line.strip("= ").strip() for line in output.splitlines() if line.strip("= ")]
    said = [line for line in lines if line.startswith(("ERROR", "WARNING"))] or lines[-1:] or ["no output"]
    return re.sub(r"^(ERROR|WARNING)\W*", "", said[0])[:200]


if __name__ == "__main__":
    launch_all(int(sys.argv[1]), sys.argv[2:], "cuda")
