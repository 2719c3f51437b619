"""`make sanitize`: every pointwise kernel at every shape class under compute-sanitizer's four tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import console, stages
from ...build import library
from ...gpu_tools.sanitizer import NO_ERROR, compile_program, last_line, require_tools
from ...paths import ROOT, display_path
from ...results import records, sources
from ...stages import POINTWISE_KERNELS, Stage
from . import STUDY

if TYPE_CHECKING:
    import torch

SANITIZER_TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SHAPE_CLASSES = {
    "no row": (0, 8),
    "one row": (1, 33),
    "one unit": (5, 1),
    "odd": (3, 70),
    "more units than a block has threads": (2, 1025),
    "more rows than a grid has in y": (65537, 2),
}  # B, S
DTYPES = ("float32", "float64")
TOOL_SECONDS = 240  # for one tool and stage; torch starts slowly under a tool
PAUSE = 0.05  # seconds: the tool is a separate process, and its last lines may arrive late
TOOL_LINE = re.compile(r"^========= (?P<text>\S.*)$")
CASE_PRINTED = re.compile(r"^CASE (?P<kernel>\w+) (?P<dtype>\w+) (?P<B>\d+) (?P<S>\d+)$")


@dataclass(frozen=True)
class LaunchCase:
    """One kernel, dtype and size, as a driver prints them."""

    kernel: str
    dtype: str
    B: int
    S: int


def sizes_by_kernels(stage: Stage) -> dict[tuple[str, ...], list[tuple[int, int]]]:
    """The sizes at which a stage's kernels run: for any cell, and for small cells if it has kernels for these."""
    small = [(B, S) for B, S in SHAPE_CLASSES.values() if B < 256 > S]
    return {POINTWISE_KERNELS: list(SHAPE_CLASSES.values())} | (
        {stage.small_kernels: small} if stage.small_kernels else {}
    )


def launch_cases(stage: Stage) -> list[LaunchCase]:
    """All cases of a stage, in order."""
    return [
        LaunchCase(kernel, dtype, *size)
        for kernels, sizes in sizes_by_kernels(stage).items()
        for size in sizes
        for dtype in DTYPES
        for kernel in kernels
    ]


def run_sanitizer(only: int | None = None) -> int:
    """Runs all tools on all kernels and writes the record; returns 1 if a tool found an error.

    With the number of one stage, the records of the others stay if they are from this machine and these versions.
    """
    tool = require_tools()
    measured = [stage for stage in stages.cell_stages() if stage.pointwise_tensors]
    wanted = [stage for stage in measured if only in (None, stage.number)]
    record = records.start_record({str(stage.number): sources.hash_stage(stage) for stage in wanted})
    record["rows"] = []
    if only is not None:
        record = records.keep_other_parts(record, STUDY.record(), [str(stage.number) for stage in wanted])
        record["rows"] = [row for row in record["rows"] if row["stage"] != only]
    for stage in wanted:
        with console.step(f"build stage {stage.number}"):
            command = driver_command(stage)
        for name in SANITIZER_TOOLS:
            with console.step(f"{name} over stage {stage.number}"):
                output = run_tool([tool, "--tool", name, *command])
            record["rows"] += outcome_rows(stage, name, output)
            records.save(record, STUDY.record())  # a later tool may crash the machine
    for line in summarise_outcomes(record):
        console.say(f"  {line}")
    where = display_path(STUDY.record())
    console.say(f"Written to {where}; `make tables` shows it in docs/results/README.md.")
    return int(any(row["outcome"] == "errors" for row in record["rows"]))


def driver_command(stage: Stage) -> list[str]:
    """The command that launches every kernel of a stage: a program without torch if there is one, else Python."""
    sizes = [str(number) for size in SHAPE_CLASSES.values() for number in size]
    source = Path(__file__).with_name(f"stage{stage.number}.cu")
    if not source.exists():
        library.build_stage(stage, "cuda")
        return [sys.executable, "-m", "common.studies.sanitize.recorder", str(stage.number), *sizes]
    program = compile_program(source, f"-I{stage.folder / 'csrc'}", "-O2")
    return [str(program), *sizes]


def run_tool(command: Sequence[str]) -> str:
    """The output of a tool and its program in one text, with an added last line if the tool fails."""
    # Without the cache, every tensor is a separate allocation, with its own bounds and its own unwritten bytes.
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTHONUNBUFFERED": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=TOOL_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace") + f"\nENDED after {TOOL_SECONDS} s"
    text = done.stdout.decode(errors="replace")
    return f"{text}\nENDED with status {done.returncode}" if done.returncode else text


def outcome_rows(stage: Stage, tool: str, output: str) -> list[dict]:
    """A row for each case: "clean", "errors" with the first one and their number, or "not measured" and why."""
    found, before, whole = group_errors(output)
    refused = None
    if not found or any("not supported" in text or "Internal" in text for text in before):
        refused = next(iter(before), None) or last_line(output)
    answer = []
    for case in launch_cases(stage):
        errors = found.get(case)
        if refused or errors is None:
            outcome, message = "not measured", refused or f"the program ended before it: {last_line(output)}"
        elif errors:
            outcome, message = "errors", f"{errors[0]} ({len(errors)} in all)"
        elif not whole:
            outcome, message = "not measured", f"the tool gave no summary: {last_line(output)}"
        else:
            outcome, message = "clean", ""
        shape = next(name for name, size in SHAPE_CLASSES.items() if size == (case.B, case.S))
        facts = {"stage": stage.number, "kernel": case.kernel, "dtype": case.dtype, "shape": shape}
        answer.append(facts | {"B": case.B, "S": case.S, "tool": tool, "outcome": outcome, "message": message[:200]})
    return answer


def group_errors(output: str) -> tuple[dict[LaunchCase, list[str]], list[str], bool]:
    """The errors of each case in the order of the output, those before the first case, and whether it has a summary.

    An error is a line of the tool that is not indented; the indented lines below it are its details.
    """
    found: dict[LaunchCase, list[str]] = {}
    before: list[str] = []
    errors = before
    for line in output.splitlines():
        if case := CASE_PRINTED.match(line):
            key = LaunchCase(case["kernel"], case["dtype"], int(case["B"]), int(case["S"]))
            errors = found.setdefault(key, [])
        elif (said := TOOL_LINE.match(line)) and not NO_ERROR.match(said["text"]):
            errors.append(said["text"].strip())
    return found, before, "SUMMARY: " in output


def summarise_outcomes(record: dict) -> Iterator[str]:
    """A line for each stage and tool."""
    groups: dict[tuple[int, str], list[dict]] = {}
    for row in record["rows"]:
        groups.setdefault((row["stage"], row["tool"]), []).append(row)
    for (number, tool), group in groups.items():
        counts = {o: sum(row["outcome"] == o for row in group) for o in ("clean", "errors", "not measured")}
        said = ", ".join(
            f"{count} {'with errors' if outcome == 'errors' else outcome}"
            for outcome, count in counts.items()
            if count
        )
        message = next((f" ({row['message']})" for row in group if row["message"]), "")
        yield f"stage {number}, {tool}: {said}{message}"


def launch_cases_of(number: int, sizes: Sequence[int], target: str = "cuda") -> None:
    """The driver in Python, for a stage whose kernels need torch; started under a tool by `sanitize`."""
    import torch

    from ...cell import case
    from ...measure import pointwise

    stage, device = stages.get_stage(number), "cuda" if target == "cuda" else "cpu"
    wanted = list(zip(sizes[::2], sizes[1::2], strict=True))
    for names, of_kernels in sizes_by_kernels(stage).items():
        cell = pointwise.launcher_for(stage, names, target)
        for B, S in (size for size in of_kernels if size in wanted):
            for dtype in DTYPES:
                numbers = torch.linspace(-4, 4, max(1, B * 3 * S), dtype=getattr(torch, dtype))
                z = numbers[: B * 3 * S].reshape(B, 3 * S).to(device, copy=True)
                others = [numbers[: B * S].reshape(B, S).to(device, copy=True) for _ in range(3)]
                given = pointwise.PointwiseInputs(case.Case(B, 0, S), z, *others)
                forward, backward = (LaunchCase(name, dtype, B, S) for name in names)
                announce_case(forward)
                found = cell.forward(given)
                assert_finite(found)
                announce_case(backward)
                assert_finite(cell.backward(given, found))
    time.sleep(PAUSE)


def announce_case(case: LaunchCase) -> None:
    """Marks the start of a case: the tool's reports from here on belong to it."""
    time.sleep(PAUSE)
    print(f"\nCASE {case.kernel} {case.dtype} {case.B} {case.S}", flush=True)


def assert_finite(tensors: Sequence[torch.Tensor]) -> None:
    """Reads every number, so that initcheck reports elements that a kernel did not write."""
    for tensor in tensors:
        assert tensor.cpu().isfinite().all(), "a kernel left elements unwritten"


if __name__ == "__main__":
    launch_cases_of(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])
