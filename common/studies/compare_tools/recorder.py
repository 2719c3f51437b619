"""`make compare-tools`: which tool finds the mistakes of common/emulator/programs/mistakes, on a machine with a GPU.

Each case runs separately: without a tool, on the emulator, and under each of compute-sanitizer's tools. The outcomes
go to docs/results/studies/compare_tools.json, a row for each case and tool, and from there to docs/emulator.md.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ... import console, paths
from ...emulator import build_program
from ...gpu_tools import sanitizer
from ...paths import ROOT, display_path
from ...results import records, sources
from . import STUDY, mistakes
from .mistakes import Mistake

# The options with which a tool finds most mistakes; options that an older tool does not know are left out.
SANITIZER_OPTIONS = {
    "memcheck": ("--leak-check=full", "--track-stream-ordered-races=all"),
    "racecheck": (),
    "initcheck": ("--initcheck-address-space=all",),
    "synccheck": (),
}
TOOLS = ("emulator", *SANITIZER_OPTIONS, "no tool")
TOOL_OUTCOMES = {
    "right line": "an error that names a marked line",
    "elsewhere": "an error, but nothing of a marked line",
    "silent": "no error",
    "hang": "no end",
    "not run": "the tool refused the machine",
}
LIBRARIES = ("-lcublas", "-lcufft", "-lcurand")  # that some programs use
CASE_SECONDS = 20  # for one case under one tool
JOBS = 8
# The mistakes that notebook 03c shows: the complete output of the tools is recorded for these.
SHOWN_CASES = (
    "wrong_guard_off_by_one",
    "wrong_no_barrier_in_the_loop",
    "wrong_total_without_atomics",
    "wrong_barrier_inside_the_if",
)
# Lines of a tool's output that are not errors.
REMARK = re.compile(
    f"{sanitizer.NO_ERROR.pattern}|Target application returned|Destroy on device error|.*process didn't terminate"
)


def record_tool_comparison() -> int:
    """Runs all cases under all tools, writes the record and prints its table; always returns 0."""
    from ...results import machine
    from .table import tool_comparison_table

    sanitizer_path = sanitizer.require_tools()
    programs = mistakes.mistake_programs()
    with console.step(f"build {len(programs)} programs"), ThreadPoolExecutor(JOBS) as pool:
        for_gpu = list(
            pool.map(lambda program: sanitizer.compile_program(program, "-g", "-rdc=true", *LIBRARIES), programs)
        )
        emulated = [build_mistakes(programs[0]), *pool.map(build_mistakes, programs[1:])]
    rows = []
    for tool in TOOLS:
        prefix = []
        if tool in SANITIZER_OPTIONS:
            prefix = [sanitizer_path, "--tool", tool, *known_options(sanitizer_path, tool)]
        built = emulated if tool == "emulator" else for_gpu
        jobs = [
            ([*prefix, str(executable)], together)
            for program, executable in zip(programs, built, strict=True)
            for together in group_cases(mistakes.read_mistakes(program))
        ]
        with console.step(f"{tool} over all cases"), ThreadPoolExecutor(JOBS) as pool:
            for found in pool.map(lambda job, tool=tool: run_cases(tool, *job), jobs):
                rows += found
    version = machine.first_version([sanitizer_path, "--version"], "Version ")
    hashes = {program.stem: hash_program(program) for program in programs}
    record = records.start_record(hashes, {"compute-sanitizer": version}) | {"rows": rows}
    one_row_a_line = json.dumps(record).replace('{"program"', '\n{"program"')
    records.save_text(one_row_a_line + "\n", STUDY.record())
    console.say(f"Written to {display_path(STUDY.record())}; `make tables` shows it in docs/emulator.md.")
    console.say(tool_comparison_table())
    return 0


def build_mistakes(program: Path) -> Path:
    """A program of common/emulator/programs/mistakes, built for the emulator."""
    work = paths.build_dir() / "checks" / program.stem
    work.mkdir(parents=True, exist_ok=True)
    return build_program(str(program), work, paths.build_cache())


def known_options(sanitizer_path: str, tool: str) -> list[str]:
    """The options that the installed version of a tool knows."""
    wanted = SANITIZER_OPTIONS.get(tool, ())
    known = subprocess.run([sanitizer_path, "--help"], capture_output=True, text=True).stdout if wanted else ""
    return [option for option in wanted if option.partition("=")[0] in known]


def group_cases(cases: Sequence[Mistake]) -> list[list[Mistake]]:
    """Each mistake alone, because it may corrupt its process; all right cases together, which is faster."""
    return [*([case] for case in cases if case.kind != "right"), [case for case in cases if case.kind == "right"]]


def run_cases(tool: str, command: Sequence[str], cases: Sequence[Mistake]) -> list[dict]:
    """Runs cases in one process; if there is a report about several cases, runs each again separately."""
    output, status = run_command([*command, *(case.name for case in cases)])
    rows = [comparison_row(case, tool, output, status) for case in cases]
    if len(cases) == 1 or all(row["outcome"] == "silent" for row in rows):
        return rows
    return [alone for case in cases for alone in run_cases(tool, command, [case])]


def run_command(command: Sequence[str]) -> tuple[str, int | None]:
    """The output and status of a command and all that it starts; the status is None if it had to be stopped."""
    with tempfile.TemporaryFile() as said:  # not a pipe: a process that survives the stop would keep it open
        started = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            status = started.wait(CASE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
            status = None
        said.seek(0)
        return said.read().decode(errors="replace"), status


def comparison_row(case: Mistake, tool: str, output: str, status: int | None) -> dict:
    """The row of a case under a tool: the outcome and the first line of the first error."""
    outcome, message = judge_output(case, tool, output, status)
    facts = {"program": case.program.stem, "case": case.name, "tool": tool}
    whole = (
        {"said": output.replace(f"{ROOT}/", "")[:3000]}
        if tool in SANITIZER_OPTIONS and case.name in SHOWN_CASES
        else {}
    )
    return facts | {"outcome": outcome, "message": message[:120]} | whole


def judge_output(case: Mistake, tool: str, output: str, status: int | None) -> tuple[str, str]:
    """The outcome, one of `TOOL_OUTCOMES`, and the first line of the first error."""
    if tool == "emulator":
        errors = [finding.text for finding in mistakes.parse_report(output, case.program)]
        finds = any(
            mistakes.matches_mistake(finding, case) for finding in mistakes.parse_report(output, case.program)
        )
    elif tool in SANITIZER_OPTIONS:
        errors = errors_of(output)
        finds = any(
            f"{case.program.name}:{mark.line}" in named_lines(error) for error in errors for mark in case.marks
        )
        refused = next((error for error in errors if "not supported" in error or "Internal" in error), None)
        if refused or (status is not None and "SUMMARY: " not in output):
            return "not run", (refused or sanitizer.last_line(output)).strip()
    else:
        errors, finds = ([sanitizer.last_line(output)] if status else []), False
    if finds:
        return "right line", first_words(errors)
    if status is None:
        return "hang", first_words(errors)
    return ("elsewhere" if errors else "silent"), first_words(errors)


def first_words(errors: Sequence[str]) -> str:
    """The first line of the first error."""
    return errors[0].strip().partition("\n")[0] if errors else ""


def errors_of(output: str) -> list[str]:
    """The errors that a tool of compute-sanitizer printed, each with the indented lines below it."""
    errors: list[str] = []
    inside = False
    for line in output.splitlines():
        text = line.removeprefix("=========")
        if text == line or not text.strip():
            inside = False
        elif text.startswith("  "):
            if inside:
                errors[-1] += f"\n{text}"
        else:
            inside = not REMARK.match(text.strip())
            errors += [text.strip()] * inside
    return errors


def named_lines(error: str) -> set[str]:
    """The places that an error names: `file.cu:12`."""
    return set(re.findall(r"\w+\.cu:\d+", error))


def hash_program(program: Path) -> str:
    """A hash of a program, without comments and blank lines."""
    return sources.hash_code([program, program.parent / "case.h"], program.parent)


def has_changed(program: Path, record: dict) -> bool:
    """Whether a program has changed since it was compared."""
    return record["sources"].get(program.stem) != hash_program(program)
