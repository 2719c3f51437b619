"""`make finders`: who finds the mistakes of tests/checks, on a machine with a GPU.

Each case runs by itself: with nothing around it, on the emulator, and under each of compute-sanitizer's tools. What
they made of it goes to docs/results/checks.json, a row for each case and finder, and from there to docs/emulator.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

from . import architectures, build, console, emulate, mistakes, results, sanitizer
from .errors import UserError
from .mistakes import Case
from .stages import ROOT

# The options that let a tool find most; one that an older tool does not know is left out.
TOOLS = {
    "memcheck": ("--leak-check=full", "--track-stream-ordered-races=all"),
    "racecheck": (),
    "initcheck": ("--initcheck-address-space=all",),
    "synccheck": (),
}
FINDERS = ("emulator", *TOOLS, "no tool")
OUTCOMES = {
    "right line": "an error that names a marked line",
    "elsewhere": "an error, but nothing of a marked line",
    "silent": "no error",
    "hang": "no end",
    "not run": "the tool refused the machine",
}
SECONDS = 20  # for one case under one tool
JOBS = 8
# The mistakes that notebook 03 shows: of these, what the tools print is kept whole.
SHOWN = (
    "wrong_guard_off_by_one",
    "wrong_no_barrier_in_the_loop",
    "wrong_total_without_atomics",
    "wrong_barrier_inside_the_if",
)
# What a tool says besides errors.
REMARK = re.compile(
    f"{sanitizer.NO_ERROR.pattern}|Target application returned|Destroy on device error|.*process didn't terminate"
)


def compare() -> int:
    """Runs all cases under all finders and writes docs/results/checks.json; returns 0, whatever they found."""
    tool = sanitizer.compute_sanitizer()
    lacking = [name for name, found in (("nvcc", architectures.nvcc()), ("compute-sanitizer", tool)) if not found]
    if reason := build.unavailable("cuda") if not lacking else f"no {' and no '.join(lacking)}":
        raise UserError(f"nothing was run: {reason}; compute-sanitizer and nvcc are parts of the CUDA Toolkit")
    from . import machine

    programs = mistakes.programs()
    with console.step(f"build {len(programs)} programs"), ThreadPoolExecutor(JOBS) as pool:
        for_gpu = list(pool.map(lambda program: sanitizer.compiled(program, "-g"), programs))
        emulated = [emulated_program(programs[0]), *pool.map(emulated_program, programs[1:])]
    rows = []
    for finder in FINDERS:
        prefix = [tool, "--tool", finder, *known_options(tool, finder)] if finder in TOOLS else []
        built = emulated if finder == "emulator" else for_gpu
        jobs = [
            ([*prefix, str(executable)], together)
            for program, executable in zip(programs, built, strict=True)
            for together in groups(mistakes.cases(program))
        ]
        with console.step(f"{finder} over all cases"), ThreadPoolExecutor(JOBS) as pool:
            for found in pool.map(lambda job, finder=finder: look(finder, *job), jobs):
                rows += found
    versions = machine.versions() | {"compute-sanitizer": machine.first_version([tool, "--version"], "Version ")}
    record = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine.machine(),
        "versions": versions,
        "sources": {program.stem: source_hash(program) for program in programs},
        "rows": rows,
    }
    # A row a line.
    results.COMPARED.write_text(json.dumps(record).replace('{"program"', '\n{"program"') + "\n")
    console.say(markdown())
    console.say(f"Written to {results.shown(results.COMPARED)}; `make tables` shows it in docs/emulator.md.")
    return 0


def emulated_program(program: Path) -> Path:
    """A program of tests/checks, built for the emulator."""
    work = build.BUILD / "checks" / program.stem
    work.mkdir(parents=True, exist_ok=True)
    return emulate.build(str(program), work)


def known_options(tool: str, finder: str) -> list[str]:
    """The options for a tool that this version of it knows."""
    wanted = TOOLS.get(finder, ())
    known = subprocess.run([tool, "--help"], capture_output=True, text=True).stdout if wanted else ""
    return [option for option in wanted if option.partition("=")[0] in known]


def groups(cases: Sequence[Case]) -> list[list[Case]]:
    """Each mistake alone, for a process is spoilt by it; and all right cases together, which is faster."""
    return [*([case] for case in cases if case.kind != "right"), [case for case in cases if case.kind == "right"]]


def look(finder: str, command: Sequence[str], cases: Sequence[Case]) -> list[dict]:
    """Runs cases in one process; if anything is said of several, each again by itself."""
    output, status = run([*command, *(case.name for case in cases)])
    rows = [row(case, finder, output, status) for case in cases]
    if len(cases) == 1 or all(row["outcome"] == "silent" for row in rows):
        return rows
    return [alone for case in cases for alone in look(finder, command, [case])]


def run(command: Sequence[str]) -> tuple[str, int | None]:
    """What a command and all that it starts print, and its status; None when it had to be stopped."""
    with tempfile.TemporaryFile() as said:  # no pipe: a process that outlives the stop would keep it open
        started = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            status = started.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
            status = None
        said.seek(0)
        return said.read().decode(errors="replace"), status


def row(case: Case, finder: str, output: str, status: int | None) -> dict:
    """What became of a case under a finder, and its first words."""
    outcome, message = judged(case, finder, output, status)
    facts = {"program": case.program.stem, "case": case.name, "finder": finder}
    whole = {"said": output.replace(f"{ROOT}/", "")[:3000]} if finder in TOOLS and case.name in SHOWN else {}
    return facts | {"outcome": outcome, "message": message[:120]} | whole


def judged(case: Case, finder: str, output: str, status: int | None) -> tuple[str, str]:
    """The outcome, one of `OUTCOMES`, and the first words of what was found."""
    if finder == "emulator":
        errors = [finding.text for finding in mistakes.findings(output, case.program)]
        finds = any(mistakes.explains(finding, case) for finding in mistakes.findings(output, case.program))
    elif finder in TOOLS:
        errors = errors_of(output)
        finds = any(f"{case.program.name}:{mark.line}" in lines(error) for error in errors for mark in case.marks)
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


def lines(error: str) -> set[str]:
    """The places that an error names: `file.cu:12`."""
    return set(re.findall(r"\w+\.cu:\d+", error))


def source_hash(program: Path) -> str:
    """A hash of a program, without comments and blank lines."""
    code = [results.cpp_code(path.read_text()) for path in (program, program.parent / "case.h")]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()[:20]


# The table ----------------------------------------------------------------------------------------------------


def markdown() -> str:
    """Program by program, how many of its mistakes each finder reports, and how many right cases."""
    from .tables import markdown as table

    record = json.loads(results.COMPARED.read_text()) if results.COMPARED.exists() else None
    rows = record["rows"] if record else []
    header = ["mistakes", "cases", *FINDERS[:-1], "any of the four", "the program fails by itself"]
    lines = [line_of(program, rows) for program in mistakes.programs()]
    lines.append(line_of_right_ones(rows))
    if record is None:
        where = "Not measured yet: `make finders` on a machine with a GPU and compute-sanitizer."
        return f"{where}\n\n{table(header, lines)}"
    where = (
        f"{record['machine']['gpu']}, driver {record['machine']['driver']}, nvcc {record['versions']['nvcc']}, "
        f"compute-sanitizer {record['versions']['compute-sanitizer']}, {record['date'][:10]}. Counted is what was "
        "reported at a line that is to blame; in brackets what was reported elsewhere, and programs that did not end "
        f"within {SECONDS} s."
    )
    stale = [title(program) for program in mistakes.programs() if is_stale(program, record)]
    notes = [f"Stale, because the programs have changed since: {', '.join(stale)}."] if stale else []
    notes.append(f"Not reported at its line by the emulator: {missed(rows)}.")
    return "\n\n".join([where, table(header, lines), *notes])


def title(program: Path) -> str:
    """What a program's mistakes are about: its first words."""
    return program.read_text().partition("\n")[0].removeprefix("// ").partition(":")[0]


def line_of(program: Path, rows: Sequence[dict]) -> list[str]:
    """The line of the table for a program."""
    wrong = [case.name for case in mistakes.cases(program) if case.kind != "right"]
    own = [row for row in rows if row["program"] == program.stem and row["case"] in wrong]
    cells = {finder: cell(finder, [row for row in own if row["finder"] == finder]) for finder in FINDERS}
    by_tools = {row["case"] for row in own if row["finder"] in TOOLS and row["outcome"] == "right line"}
    together = str(len(by_tools)) if own else "not measured"
    return [title(program), str(len(wrong)), *(cells[f] for f in FINDERS[:-1]), together, cells[FINDERS[-1]]]


def cell(finder: str, own: Sequence[dict]) -> str:
    """How many were found at the right line, and in brackets what became of others that were not silent."""
    count = {outcome: sum(row["outcome"] == outcome for row in own) for outcome in OUTCOMES}
    if not own or count["not run"] == len(own):
        return "not measured"
    found = "elsewhere" if finder == "no tool" else "right line"  # alone, a program names no line
    others = [f"{count[name]} {name}" for name in ("elsewhere", "hang", "not run") if count[name] and name != found]
    return f"{count[found]} ({', '.join(others)})" if others else str(count[found])


def line_of_right_ones(rows: Sequence[dict]) -> list[str]:
    """The line for the cases without a mistake: every report there is a false alarm."""
    right = [(p.stem, case.name) for p in mistakes.programs() for case in mistakes.cases(p) if case.kind == "right"]
    own = [row for row in rows if (row["program"], row["case"]) in right]
    alarms = [row for row in own if row["outcome"] != "silent"]
    cells = {
        finder: str(sum(row["finder"] == finder for row in alarms)) if own else "not measured" for finder in FINDERS
    }
    together = str(len({(row["program"], row["case"]) for row in alarms if row["finder"] in TOOLS}))
    shown = together if own else "not measured"
    return ["no mistake: false alarms", str(len(right)), *(cells[f] for f in FINDERS[:-1]), shown, cells[FINDERS[-1]]]


def missed(rows: Sequence[dict]) -> str:
    """The mistakes that the emulator does not report at a marked line; "none" if there is no such."""
    found = {(r["program"], r["case"]) for r in rows if r["finder"] == "emulator" and r["outcome"] == "right line"}
    wrong = [(p.stem, case.name) for p in mistakes.programs() for case in mistakes.cases(p) if case.kind != "right"]
    return ", ".join(f"`{' '.join(names)}`" for names in wrong if names not in found) or "none"


def is_stale(program: Path, record: dict) -> bool:
    """Whether a program has changed since it was compared."""
    return record["sources"].get(program.stem) != source_hash(program)
