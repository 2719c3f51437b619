"""`make ncu`: compares the emulator's counts with Nsight Compute's, for every stage's kernels and microbenchmarks.

The microbenchmarks are those of microbenchmarks.cu, whose counts were worked out by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

from ... import console, stages
from ...build import library, modules
from ...emulator import collect_counts
from ...errors import UserError
from ...gpu_tools import ncu_tool
from ...gpu_tools.ncu_tool import NUMBERS, Counts, KernelCase, kernel_counts
from ...measure import stage_counts
from ...paths import display_path
from ...results import records, sources
from ...stages import POINTWISE_KERNELS, Stage
from . import STUDY, microbenchmarks

POINTWISE_SIZES, SMALL_CELL_SIZES = ((64, 512), (3, 70)), ((16, 128), (3, 70))  # B, S
DTYPES = ("float32", "float64")


def record_ncu_counts(emulator_only: bool = False, only: int | None = None) -> int:
    """Counts every launch with both and writes the record.

    With `emulator_only`, the recorded numbers of ncu stay, and no GPU is needed. With the number of one stage, the
    records of the others stay if they are from this machine and these versions.
    """
    if not emulator_only and (reason := ncu_tool.missing_requirement()):
        raise UserError(f"nothing was run: {reason}")
    record = read_ncu_record() if emulator_only else start_ncu_record()
    chosen = [name for name in counted_programs() if only is None or name.startswith(f"stage {only}")]
    if only is not None and not emulator_only:
        record = records.keep_other_parts(record, STUDY.record(), chosen)
    before, record["launches"] = {KernelCase.of(launch): launch for launch in record["launches"]}, []
    for name, program in counted_programs().items():
        with console.step(f"{name} on the emulator"):
            found = program.emulated()
        said = {case: (launch["ncu"], launch["refused"]) for case, launch in before.items()}
        if not emulator_only and name in chosen:
            with console.step(f"{name} under ncu"):
                said = ncu_tool.match_launches(list(found), program.profiled())
        for case, ours in found.items():
            theirs, refused = said.get(case, (None, "not run yet"))
            record["launches"].append({**vars(case), "emulator": ours, "ncu": theirs, "refused": refused})
        records.save(record, STUDY.record())  # a later program may crash the machine
    console.say(f"  {summarise_agreement(record)}")
    console.say(f"Written to {display_path(STUDY.record())}; `make tables` shows it in docs/results/README.md.")
    return 0


def read_ncu_record() -> dict:
    """The record; an empty one if there is none."""
    return STUDY.read_record() or {"date": None, "machine": None, "versions": None, "sources": {}, "launches": []}


def start_ncu_record() -> dict:
    """A record without launches, of this machine and of the sources as they are now."""
    hashes = {name: program.source_hash() for name, program in counted_programs().items()}
    return records.start_record(hashes, {"ncu": ncu_tool.ncu_version()}) | {"launches": []}


def differences(record: dict) -> Iterator[tuple[KernelCase, str, str, int, int]]:
    """Each count that differs: case, memory space, kind of count, the emulator's number and ncu's."""
    for launch in record["launches"]:
        if launch["ncu"] is not None:
            for space in spaces_of(launch):
                for what in NUMBERS[space]:
                    ours, theirs = (launch[who].get(space, {}).get(what, 0) for who in ("emulator", "ncu"))
                    if ours != theirs:
                        yield KernelCase.of(launch), space, what, ours, theirs


def spaces_of(launch: dict) -> list[str]:
    """The memory spaces that the emulator or ncu has counted."""
    return [space for space in NUMBERS if space in launch["emulator"] or space in (launch["ncu"] or {})]


def summarise_agreement(record: dict) -> str:
    """A sentence that says how many numbers agree."""
    done = [launch for launch in record["launches"] if launch["ncu"] is not None]
    total = sum(len(NUMBERS[space]) for launch in done for space in spaces_of(launch))
    refused = next((launch["refused"] for launch in record["launches"] if launch["ncu"] is None), None)
    parts = [f"{total - len(list(differences(record)))} of {total} numbers are the same in ncu."] if total else []
    if refused:
        parts.append(f"Not measured in {len(record['launches']) - len(done)} launches: {refused}.")
    return " ".join(parts)


class CountedProgram(NamedTuple):
    """A program to count: a hash of its sources, its launches with the emulator's counts, and ncu's counts."""

    source_hash: Callable[[], str]
    emulated: Callable[[], dict[KernelCase, Counts]]
    profiled: Callable[[], str]


def counted_programs() -> dict[str, CountedProgram]:
    """The programs to count: the microbenchmarks, and each stage's kernels."""
    found = {
        "microbenchmarks": CountedProgram(
            microbenchmarks.hash_microbenchmarks, count_microbenchmarks, profile_microbenchmarks
        )
    }
    for stage in stages.cell_stages():
        if stage.pointwise_tensors:
            found[f"stage {stage.number}"] = stage_program(stage, POINTWISE_KERNELS)
        if stage.small_kernels:
            found[f"stage {stage.number}, small cells"] = stage_program(stage, stage.small_kernels)
    return found


def stage_program(stage: Stage, names: Sequence[str]) -> CountedProgram:
    """The program that launches these kernels of a stage; ncu profiles no others."""
    return CountedProgram(
        partial(sources.hash_stage, stage),
        partial(count_stage_kernels, stage, names),
        partial(profile_stage, stage, names),
    )


def count_microbenchmarks() -> dict[KernelCase, Counts]:
    """The emulator's counts of each microbenchmark, in the order of the file."""
    counted = microbenchmarks.count_on_emulator()
    return {KernelCase(kernel): kernel_counts(counted, kernel) for kernel in microbenchmarks.read_expected_counts()}


def profile_microbenchmarks() -> str:
    """Ncu's counts of the microbenchmarks."""
    return ncu_tool.run_ncu([str(microbenchmarks.compile_for_gpu())], list(microbenchmarks.read_expected_counts()))


def profile_stage(stage: Stage, names: Sequence[str]) -> str:
    """Ncu's counts of kernels of a stage, built for this machine's GPU."""
    library.build_stage(stage, "cuda")
    return ncu_tool.run_ncu([sys.executable, "-m", "common.studies.ncu.recorder", str(stage.number), *names], names)


def launch_stage_kernels(
    number: int,
    names: Sequence[str],
    target: str,
    around: Callable[[KernelCase], AbstractContextManager] = lambda case: nullcontext(),
) -> None:
    """Launches two kernels of a stage, of its pointwise part or of a small cell, at every size and dtype.

    Each launch, with the other kernels that it needs, is inside `around(case)`.
    """
    from ...measure import pointwise

    cell = pointwise.launcher_for(stages.get_stage(number), names, target)
    for B, S in POINTWISE_SIZES if tuple(names) == POINTWISE_KERNELS else SMALL_CELL_SIZES:
        for dtype in DTYPES:
            given = stage_counts.make_inputs(B, S, dtype, "cuda" if target == "cuda" else "cpu")
            forward, backward = (KernelCase(name, number, dtype, B, S) for name in names)
            with around(forward):
                found = cell.forward(given)
            with around(backward):
                cell.backward(given, found)


def count_stage_kernels(stage: Stage, names: Sequence[str]) -> dict[KernelCase, Counts]:
    """The emulator's counts of each launch of these kernels of a stage."""
    module, found = modules.load_stage(stage.number, "emulator"), {}

    @contextmanager
    def around(case: KernelCase) -> Iterator[None]:
        with collect_counts(module) as counted:
            yield
        found[case] = kernel_counts(counted, case.kernel)

    launch_stage_kernels(stage.number, names, "emulator", around)
    return found


if __name__ == "__main__":
    launch_stage_kernels(int(sys.argv[1]), sys.argv[2:], "cuda")
