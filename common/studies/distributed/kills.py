"""A training in two processes that are killed at random moments, and the same training undisturbed.

`make distributed-kills` records docs/results/studies/distributed_kills.json. It fails if anything in the last
checkpoints differs, or if a restart began before a checkpoint that was complete.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from ... import console
from ...cell.case import fresh_seed
from ...check.distributed import scratch
from ...check.distributed.faults import differences, train_and_kill
from ...check.distributed.launching import launch, read_output
from ...check.distributed.workers import train
from ...errors import UserError
from ...paths import display_path
from ...results import records, sources
from ...stages import get_stage
from . import STUDY

OPTIONS = ["--task", "rows", "--cell", "lltm", "--stage", "1", "--every", "20", "--timeout", "60"]
LONGEST_LIFE = 1.5  # seconds that a process lives at most before the next kill
STEPS_A_KILL = 300  # more than two processes compute in that time


def measure_kills(kills: int, seed: int, path: Path) -> dict:
    """Trains undisturbed and disturbed, compares, and writes the record. Raises `UserError` if anything was lost."""
    options = [*OPTIONS, "--steps", str(kills * STEPS_A_KILL)]
    with scratch() as folder:
        with console.step(f"train {kills * STEPS_A_KILL} steps in two processes"):
            start = time.perf_counter()
            launch(train, 2, str(folder / "undisturbed"), options, logs=folder / "logs")
            undisturbed = time.perf_counter() - start
        with console.step(f"the same, with {kills} kills"):
            start = time.perf_counter()
            moments = train_and_kill(folder / "killed", kills, seed, options, LONGEST_LIFE)
            disturbed = time.perf_counter() - start
        different = differences(folder / "killed", folder / "undisturbed")
        begun = [first_step(text) for text in read_output(folder / "killed" / "logs")]
    lost = [moment for moment, step in zip(moments, begun[1:], strict=False) if step and step < moment["newest"]]
    if lost or different or len(moments) < kills:
        raise UserError(f"{len(moments)} kills with seed {seed}: lost {lost}; different in {different}")
    record = records.start_record(sources.hash_stage(get_stage(9))) | {
        "options": options,
        "seed": seed,
        "kills": kills,
        "while_writing": sum(moment["is_writing"] for moment in moments),
        "seconds": round(disturbed, 1),
        "seconds_undisturbed": round(undisturbed, 1),
        "moments": moments,
    }
    records.save(record, path)
    return record


def first_step(output: str) -> int | None:
    """The step after which a process went on; 0 at the beginning, None if it was killed before it said so."""
    found = re.search(r"^(?:continues after )?step +(\d+)", output, re.MULTILINE)
    if not found:
        return None
    return int(found[1]) if found[0].startswith("continues") else 0


def record_kills(kills: int, seed: int | None = None, output: str | None = None) -> int:
    """Trains, writes the record (by default in docs/results/studies/) and says what it has; always 0."""
    path = STUDY.record("kills", output)
    record = measure_kills(kills, fresh_seed() if seed is None else seed, path)
    console.say(
        f"{record['kills']} kills, {record['while_writing']} of them while a checkpoint was written: nothing differs "
        f"({display_path(path.absolute())})"
    )
    return 0
