"""How long the emulator takes for the operations of a kernel, with and without checks, on one core and on all.

`make emulator-speed` records it in docs/results/studies/emulator_speed.json, from where it goes to the table in
docs/emulator.md. Each time is the least of several, because other work on the machine can only add to it.
For one core it is the CPU time, which such work hardly changes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from ...console import say
from ...emulator import build_program
from ...errors import UserError
from ...paths import ROOT, build_cache, display_path
from ...results import records, sources
from . import STUDY

SOURCE = Path(__file__).with_name("speed.cu")
ALL_CORES = "unchecked, all cores"
# By the name of a column, the settings of the emulator.
MODES = {
    "checked": {"EMULATOR_CHECKS": "all"},
    "unchecked, one core": {"EMULATOR_CHECKS": "none", "EMULATOR_CORES": "1"},
    ALL_CORES: {"EMULATOR_CHECKS": "none"},
}
ROUNDS = 3
LARGE = "large"  # the argument for which the program computes only the large product


def record_speed() -> int:
    """Measures, and writes the record; always returns 0."""
    seconds: dict[str, dict[str, float]] = {}
    operations: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as work:
        program = build_program(str(SOURCE.relative_to(ROOT)), Path(work), build_cache(), here=ROOT)
        for arguments, rounds in (([], ROUNDS), ([LARGE], 1)):
            for _ in range(rounds):
                for mode in choose_modes():
                    for name, time, count in run(program, mode, arguments):
                        best = seconds.setdefault(name, {})
                        best[mode] = min(time, best.get(mode, time))
                        operations[name] = count
    rows = [{"name": name, "operations": operations[name], "seconds": best} for name, best in seconds.items()]
    records.save(records.start_record(hash_source()) | {"rows": rows}, STUDY.record())
    say(f"{display_path(STUDY.record())} written; `make tables` updates the page")
    return 0


def choose_modes() -> list[str]:
    """The modes that can be measured now: elapsed times mean nothing while other work needs the cores."""
    is_busy = os.getloadavg()[0] > len(os.sched_getaffinity(0))
    return [mode for mode in MODES if not (mode == ALL_CORES and is_busy)]


def hash_source() -> str:
    """A hash of the program that is measured, without its comments."""
    return sources.hash_code([SOURCE])


def run(program: Path, mode: str, arguments: list[str]) -> list[tuple[str, float, float]]:
    """What the program measured in a mode: the name of an operation, the seconds, and how many operations it ran."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    settings = inherited | MODES[mode] | {"EMULATOR_TIMEOUT": "0"}
    done = subprocess.run([program, *arguments], env=settings, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{display_path(SOURCE)} failed ({mode}):\n{done.stderr}")
    lines = [line.rsplit(",", 3) for line in done.stdout.splitlines()]
    return [(name, float(time if mode == ALL_CORES else cpu), float(count)) for name, time, cpu, count in lines]
