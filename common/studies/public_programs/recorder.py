"""Builds and runs the programs, and records the outcomes: see the package's docstring."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...console import say
from ...emulator import fingerprint
from ...errors import UserError
from ...paths import ROOT, display_path
from ...results import records
from . import STUDY
from .program import Program
from .programs import PROGRAMS, REPOSITORIES

SECONDS = 300  # for a program to run, after it is built
BUILD_SECONDS = 900
RIGHT = "right"
UNSUPPORTED = "not supported"
OUTCOMES = {
    RIGHT: "it ends with the status 0, and the emulator reports nothing",
    "waived": "it says that the device lacks something, and does nothing",
    "reported": "the emulator reports a mistake",
    UNSUPPORTED: "it uses a feature that the emulator does not support",
    "wrong": "it ends with another status",
    "does not build": "g++ refuses it",
    "too slow": f"it does not end within {SECONDS} s",
    "not run": "a source file is missing",
}
WAIVED = 2  # the status with which NVIDIA's samples end in that case
FINDINGS = 66  # the emulator's status for a program that ends with success, although there are findings
TIME_IS_UP = 124  # and for one that exceeds its time limit


class Ran(NamedTuple):
    """How a run of `cuemu` ended: its exit status, what it printed, and the seconds that it took."""

    status: int
    output: str
    seconds: float


def record_programs(folder: str, repository: str | None = None, only: str | None = None) -> int:
    """Runs the programs of one repository, or of all; see `record_outcomes`. Raises `UserError` for another name."""
    if repository and repository not in REPOSITORIES:
        raise UserError(f"there is no repository {repository!r}; known are {', '.join(REPOSITORIES)}")
    repositories = (repository,) if repository else tuple(REPOSITORIES)
    return record_outcomes(Path(folder).absolute(), repositories, only or "")


def record_outcomes(folder: Path, repositories: Sequence[str] = tuple(REPOSITORIES), only: str = "") -> int:
    """Runs each program whose name contains `only`, and records those of each repository that `folder` contains.

    Returns 1 if it contains none of them. With `only`, nothing is recorded.
    """
    present = [name for name in repositories if (folder / name).is_dir()]
    for name in (name for name in repositories if name not in present):
        say(f"{display_path(folder)} has no folder {name}, so its record stays: clone {REPOSITORIES[name]} into it")
    for name in present:
        record = records.start_record(fingerprint().hex()) | {"rows": []}
        for program in PROGRAMS:
            if program.repository != name or only not in program.name:
                continue
            row = try_program(program, folder)
            record["rows"].append(row)
            say(f"{name}, {program.name}: {row['outcome']} {row['reason']} ({row['seconds']:.0f} s)")
        if not only:
            records.save(read_record() | {name: record}, STUDY.record())
            say(f"{display_path(STUDY.record())} has the outcomes of {name}; `make tables` updates the page")
    return int(not present)


def read_record() -> dict[str, dict]:
    """What is recorded, by repository; empty if nothing is."""
    return STUDY.read_record() or {}


def try_program(program: Program, folder: Path) -> dict:
    """The row of a program: its outcome, one of `OUTCOMES`, the reason, and whether the program ends with success."""
    facts = {"repository": program.repository, "name": program.name, "smaller": bool(program.smaller)}
    with tempfile.TemporaryDirectory(prefix="public-") as work:
        try:
            sources = shrink(program, folder / program.repository, Path(work))
        except UserError as error:
            return facts | {"outcome": "not run", "reason": str(error), "succeeds": False, "seconds": 0.0}
        ran = run(program, sources, folder / program.repository)
        outcome, reason = judge(ran)
        reason = re.sub(rf"\S*{re.escape(Path(work).name)}/", "", reason)
    succeeds = ran.status in (0, FINDINGS)
    return facts | {"outcome": outcome, "reason": reason, "succeeds": succeeds, "seconds": round(ran.seconds, 1)}


def shrink(program: Program, repository: Path, work: Path) -> list[Path]:
    """The sources of a program; those with smaller sizes are copies in `work`.

    Raises `UserError` if a source is missing, or if a text to replace is in none of them.
    """
    sources = [repository / source for source in program.sources]
    if absent := [path for path in sources if not path.is_file()]:
        raise UserError(f"{display_path(absent[0])} is missing")
    if not program.smaller:
        return sources
    texts = [path.read_text() for path in sources]
    for old, new in program.smaller:
        if not any(old in text for text in texts):
            raise UserError(f"{old!r} is in no source of {program.name}")
        texts = [text.replace(old, new) for text in texts]
    copies = [work / path.name for path in sources]
    for copy, text in zip(copies, texts, strict=True):
        copy.write_text(text)
    return copies


def run(program: Program, sources: list[Path], repository: Path) -> Ran:
    """Builds and runs a program with `cuemu run`, in its own folder."""
    home = (repository / program.sources[0]).parent
    include_dirs = [home, *(repository / name for name in program.include_dirs)]
    command = [sys.executable, "-m", "common.emulator", "run", *sources, "-std", program.standard]
    command += [word for path in include_dirs for word in ("-I", path)]
    command += [word for flag in program.compiler_flags for word in ("-Xcompiler", flag)]
    command += ["--", *program.arguments]
    settings = {"EMULATOR_TIMEOUT": str(SECONDS), "EMULATOR_DEVICES": str(program.devices)}
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | settings
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=home,
            env=environment,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_SECONDS + SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        return Ran(TIME_IS_UP, str(error.stdout or ""), time.monotonic() - start)
    return Ran(done.returncode, done.stdout, time.monotonic() - start)


def judge(ran: Ran) -> tuple[str, str]:
    """The outcome of a run and its reason, which is empty for a right result."""
    lines = [line.strip() for line in ran.output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror: ", line)]
    first = (errors or lines or [""])[0][:300]
    if ran.status == 0:
        return RIGHT, ""
    if ran.status == TIME_IS_UP:
        return "too slow", ""
    if ran.status == WAIVED:
        return "waived", (lines or [""])[-1][:300]
    if unsupported := next((line for line in lines if "the emulator does not support" in line), ""):
        return UNSUPPORTED, unsupported[:300]
    if re.search(r"does not (compile|link)", ran.output):
        return "does not build", next((line for line in errors if "does not compile" not in line), first)[:300]
    if ran.status == FINDINGS or any(line.startswith("error: ") for line in lines):
        return "reported", first
    return "wrong", (lines or [""])[-1][:300]
