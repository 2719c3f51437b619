"""`make sanitize`: every pointwise kernel at every shape class under compute-sanitizer's four tools."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from . import architectures, build, console, results, stages
from .errors import UserError
from .stages import ROOT, Stage

if TYPE_CHECKING:
    import torch

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SHAPES = {
    "no row": (0, 8),
    "one row": (1, 33),
    "one unit": (5, 1),
    "odd": (3, 70),
    "more units than a block has threads": (2, 1025),
    "more rows than a grid has in y": (65537, 2),
}  # B, S
KERNELS = ("forward_kernel", "backward_kernel")
DTYPES = ("float32", "float64")
SECONDS = 240  # for one tool and stage; torch starts slowly under a tool
PAUSE = 0.05  # seconds: the tool is another process, and its last words may still be on their way
LINE = re.compile(r"^========= (?P<text>\S.*)$")
NO_ERROR = re.compile(r"COMPUTE-SANITIZER|.* SUMMARY: |LEAK SUMMARY|This tool is deprecated|Saved host backtrace")
CASE = re.compile(r"^CASE (?P<kernel>\w+) (?P<dtype>\w+) (?P<B>\d+) (?P<S>\d+)$")


@dataclass(frozen=True)
class Case:
    """One kernel, dtype and size; as a driver prints it."""

    kernel: str
    dtype: str
    B: int
    S: int


def kernels_of(stage: Stage) -> dict[tuple[str, ...], list[tuple[int, int]]]:
    """The sizes at which its kernels are run: those for any cell, and those for small ones if it has such."""
    small = [(B, S) for B, S in SHAPES.values() if B < 256 > S]
    return {KERNELS: list(SHAPES.values())} | ({stage.small_kernels: small} if stage.small_kernels else {})


def cases(stage: Stage) -> list[Case]:
    """All that is run of a stage, in order."""
    return [
        Case(kernel, dtype, *size)
        for kernels, sizes in kernels_of(stage).items()
        for size in sizes
        for dtype in DTYPES
        for kernel in kernels
    ]


def sanitize(only: int | None = None) -> int:
    """Runs all tools over all kernels and writes docs/results/sanitizer.json; returns 1 when one found an error.

    With the number of one stage, what is recorded of the others stays, if it is of this machine and these versions.
    """
    tool = compute_sanitizer()
    lacking = [name for name, found in (("nvcc", architectures.nvcc()), ("compute-sanitizer", tool)) if not found]
    if reason := build.unavailable("cuda") if not lacking else f"no {' and no '.join(lacking)}":
        raise UserError(f"nothing was run: {reason}; compute-sanitizer and nvcc are parts of the CUDA Toolkit")
    from . import machine

    measured = [stage for stage in stages.cells() if stage.pointwise_tensors]
    wanted = [stage for stage in measured if only in (None, stage.number)]
    record = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine.machine(),
        "versions": machine.versions(),
        "sources": {str(stage.number): results.source_hash(stage) for stage in wanted},
        "rows": [],
    }
    if only is not None:
        record = results.kept(record, results.SANITIZED, [str(stage.number) for stage in wanted])
        record["rows"] = [row for row in record["rows"] if row["stage"] != only]
    for stage in wanted:
        with console.step(f"build stage {stage.number}"):
            command = driver(stage)
        for name in TOOLS:
            with console.step(f"{name} over stage {stage.number}"):
                output = run([tool, "--tool", name, *command])
            record["rows"] += rows(stage, name, output)
            results.SANITIZED.write_text(
                json.dumps(record, indent=1) + "\n"
            )  # a later tool may take the machine along
    for line in summary(record):
        console.say(f"  {line}")
    console.say(f"Written to {results.shown(results.SANITIZED)}; `make tables` shows it in docs/results/README.md.")
    return int(any(row["outcome"] == "errors" for row in record["rows"]))


def compute_sanitizer() -> str | None:
    """The tool, on the path or beside nvcc; None if it is not there."""
    nvcc = architectures.nvcc()
    return shutil.which("compute-sanitizer") or (
        shutil.which("compute-sanitizer", path=str(Path(nvcc).resolve().parent)) if nvcc else None
    )


def driver(stage: Stage) -> list[str]:
    """The command that launches every kernel of a stage: a program without torch where there is one, else Python."""
    sizes = [str(number) for size in SHAPES.values() for number in size]
    source = ROOT / "tests" / "cpp" / "sanitize" / f"stage{stage.number}.cu"
    if not source.exists():
        build.build(stage, "cuda")
        return [sys.executable, "-m", "common.sanitizer", str(stage.number), *sizes]
    program = compiled(source, f"-I{stage.folder / 'csrc'}", "-O2")
    return [str(program), *sizes]


def compiled(source: Path, *flags: str) -> Path:
    """The program of one .cu for this machine's GPU, which knows its lines. Raises `UserError` if nvcc refuses it."""
    program = build.BUILD / "sanitize" / source.stem
    program.parent.mkdir(parents=True, exist_ok=True)
    architecture = architectures.of_gpus().split(";")[0].replace(".", "").partition("+")[0]
    command = [architectures.nvcc(), "-std=c++17", "-lineinfo", f"-arch=sm_{architecture}", *flags]
    done = subprocess.run([*command, str(source), "-o", str(program)], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{results.shown(source)} does not compile.\n{build.first_errors(done.stdout + done.stderr)}")
    return program


def run(command: Sequence[str]) -> str:
    """What a tool and the program under it print, in one text, with a last line of ours when it does not end well."""
    # Without the cache, every tensor is an allocation of its own, with its own bounds and its own unwritten bytes.
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTHONUNBUFFERED": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace") + f"\nENDED after {SECONDS} s"
    text = done.stdout.decode(errors="replace")
    return f"{text}\nENDED with status {done.returncode}" if done.returncode else text


def rows(stage: Stage, tool: str, output: str) -> list[dict]:
    """A row for each case: "clean", "errors" with the first one and their number, or "not measured" and why."""
    found, before, whole = by_case(output)
    refused = None
    if not found or any("not supported" in text or "Internal" in text for text in before):
        refused = next(iter(before), None) or last_line(output)
    answer = []
    for case in cases(stage):
        errors = found.get(case)
        if refused or errors is None:
            outcome, message = "not measured", refused or f"the program ended before it: {last_line(output)}"
        elif errors:
            outcome, message = "errors", f"{errors[0]} ({len(errors)} in all)"
        elif not whole:
            outcome, message = "not measured", f"the tool gave no summary: {last_line(output)}"
        else:
            outcome, message = "clean", ""
        shape = next(name for name, size in SHAPES.items() if size == (case.B, case.S))
        facts = {"stage": stage.number, "kernel": case.kernel, "dtype": case.dtype, "shape": shape}
        answer.append(facts | {"B": case.B, "S": case.S, "tool": tool, "outcome": outcome, "message": message[:200]})
    return answer


def by_case(output: str) -> tuple[dict[Case, list[str]], list[str], bool]:
    """The errors of each case in the order of the output, those before the first case, and whether it has a summary.

    An error is a line of the tool that is not indented; what is indented below it are its details.
    """
    found: dict[Case, list[str]] = {}
    before: list[str] = []
    errors = before
    for line in output.splitlines():
        if case := CASE.match(line):
            key = Case(case["kernel"], case["dtype"], int(case["B"]), int(case["S"]))
            errors = found.setdefault(key, [])
        elif (said := LINE.match(line)) and not NO_ERROR.match(said["text"]):
            errors.append(said["text"].strip())
    return found, before, "SUMMARY: " in output


def last_line(output: str) -> str:
    """The last line that says something."""
    lines = [line.strip("= ").strip() for line in output.splitlines() if line.strip("= ")]
    return lines[-1] if lines else "no output"


def summary(record: dict) -> Iterator[str]:
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


def markdown() -> str:
    """The recorded outcomes as a table: a line for each stage, kernel and shape class, a column for each tool."""
    if not results.SANITIZED.exists():
        return "Not measured yet: `make sanitize` on a machine with a GPU that lets the tools work."
    record = json.loads(results.SANITIZED.read_text())
    lines, notes = [], {}
    for number in dict.fromkeys(row["stage"] for row in record["rows"]):
        of_stage = [row for row in record["rows"] if row["stage"] == number]
        for kernel in dict.fromkeys(row["kernel"] for row in of_stage):
            of_kernel = [row for row in of_stage if row["kernel"] == kernel]
            for shape, (B, S) in SHAPES.items():
                same = [row for row in of_kernel if row["shape"] == shape]
                cells = [cell([row for row in same if row["tool"] == tool], notes) for tool in TOOLS]
                if same:
                    lines.append([f"stage {number}", f"`{kernel}`", f"{shape} (B{B} S{S})", *cells])
    head = ["", "kernel", "shape class", *TOOLS]
    table = "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])
    stale = [n for n, digest in record["sources"].items() if results.source_hash(stages.find(int(n))) != digest]
    marked = f"\n\nStale, because the sources have changed since: stage {', '.join(stale)}." if stale else ""
    said = "".join(f"\n\n{mark}: {text}" for text, mark in notes.items())
    gpu, driver_version = record["machine"]["gpu"], record["machine"]["driver"]
    return (
        f"compute-sanitizer on {gpu}, driver {driver_version}, nvcc {record['versions']['nvcc']}, "
        f"{record['date'][:10]}; float32 and float64.\n\n{table}{said}{marked}"
    )


def cell(of_dtypes: Sequence[dict], notes: dict[str, str]) -> str:
    """The worst outcome over the dtypes; its message becomes a note below the table."""
    for outcome in ("errors", "not measured"):
        for row in of_dtypes:
            if row["outcome"] == outcome:
                mark = notes.setdefault(row["message"], f"note {len(notes) + 1}")
                return f"**{outcome}** ({mark})" if outcome == "errors" else f"{outcome} ({mark})"
    return "clean" if of_dtypes else "not measured"


def launch_all(number: int, sizes: Sequence[int], target: str = "cuda") -> None:
    """The driver in Python, for a stage whose kernels need torch; started under a tool by `sanitize`."""
    import torch

    from . import kernels

    stage, device = stages.get(number), "cuda" if target == "cuda" else "cpu"
    wanted = list(zip(sizes[::2], sizes[1::2], strict=True))
    for names, of_kernels in kernels_of(stage).items():
        cell = kernels.launcher_of(stage, names, target)
        for B, S in (size for size in of_kernels if size in wanted):
            for dtype in DTYPES:
                numbers = torch.linspace(-4, 4, max(1, B * 3 * S), dtype=getattr(torch, dtype))
                z = numbers[: B * 3 * S].reshape(B, 3 * S).to(device, copy=True)
                others = [numbers[: B * S].reshape(B, S).to(device, copy=True) for _ in range(3)]
                given = kernels.Given(kernels.Case(B, 0, S), z, *others)
                forward, backward = (Case(name, dtype, B, S) for name in names)
                begin(forward)
                found = cell.forward(given)
                expect_finite(found)
                begin(backward)
                expect_finite(cell.backward(given, found))
    time.sleep(PAUSE)


def begin(case: Case) -> None:
    """What the tool reports from here on belongs to this case."""
    time.sleep(PAUSE)
    print(f"\nCASE {case.kernel} {case.dtype} {case.B} {case.S}", flush=True)


def expect_finite(tensors: Sequence[torch.Tensor]) -> None:
    """Reads every number, so that initcheck names what a kernel has left out."""
    for tensor in tensors:
        assert tensor.cpu().isfinite().all(), "a kernel has left something out"


if __name__ == "__main__":
    launch_all(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])
