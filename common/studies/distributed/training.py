"""Trains stage 9's network with every cell and stage that runs here, and records losses, accuracy and time.

`make distributed-training` records docs/results/studies/distributed_training.json. The trainings of a cell begin with
the same numbers and read the same samples, so their losses agree until rounding makes them differ. They run one after
the other, three times; the time is the median.
"""

from __future__ import annotations

import io
import statistics
import time
from contextlib import redirect_stdout
from pathlib import Path

import torch

from ... import console, stages
from ...build import modules
from ...errors import UserError
from ...paths import display_path
from ...results import records, sources
from . import STUDY

ROUNDS = 3
EVERY = 100  # steps from one evaluation to the next
IMPLEMENTATIONS = (
    *(("lltm", number) for number in ("1", "2", "3", "4", "5", "6", "7")),
    *(("lstm", number) for number in ("nn", "7")),
    *(("gru", number) for number in ("nn", "7")),
)


def measure_training(task: str, steps: int, path: Path) -> dict:
    """Trains with everything that runs here and writes the record."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    possible = [(cell, stage) for cell, stage in IMPLEMENTATIONS if runs_on(stage, device)]
    found: dict[tuple[str, str], list[dict]] = {one: [] for one in possible}
    for turn in range(ROUNDS):
        for cell, stage in possible:
            with console.step(f"{task}, {cell} of stage {stage}, round {turn + 1}"):
                found[cell, stage].append(train_once(task, cell, stage, steps, device))
    record = records.start_record(
        {"9": sources.hash_stage(stages.get_stage(9))}
        | {stage: sources.hash_stage(stages.find_stage(int(stage))) for _, stage in possible if stage != "nn"}
    ) | {
        "task": task,
        "steps": steps,
        "device": device,
        "threads": torch.get_num_threads() if device == "cpu" else None,
        "rows": [
            {
                "cell": cell,
                "stage": stage,
                "seconds": statistics.median(row["seconds"] for row in rows),
                "history": rows[0]["history"],
            }
            for (cell, stage), rows in found.items()
        ],
        "not_run": [{"cell": c, "stage": s} for c, s in IMPLEMENTATIONS if (c, s) not in possible],
    }
    records.save(record, path)
    return record


def runs_on(stage: str, device: str) -> bool:
    """Whether a stage computes on a device. Without a GPU, stages 3 and 4 would run on the emulator for hours."""
    return stage == "nn" or device == "cuda" or "host" in stages.find_stage(int(stage)).targets


def train_once(task: str, cell: str, stage: str, steps: int, device: str) -> dict:
    """One training in this process: its seconds, and its history."""
    stage9 = modules.load_stage(9)
    processes = stage9.Processes(0, 1, 0, 1, 300.0)
    with processes.connected({}):
        samples = stage9.make_task(task, length=50, seed=0, data=None)
        torch.manual_seed(0)
        network = stage9.make_network(samples, cell, stage, 64)
        training = stage9.Training(
            samples, network, processes, processes.device(device), batch_size=64, learning_rate=3e-3, seed=0
        )
        start = time.perf_counter()
        with redirect_stdout(io.StringIO()):
            training.run(steps, EVERY)
        return {"seconds": time.perf_counter() - start, "history": training.history}


def record_training(task: str, steps: int, output: str | None = None) -> int:
    """Trains, writes the record (by default in docs/results/studies/) and prints it; always 0."""
    if steps < EVERY:
        raise UserError(f"--steps {steps}: at least {EVERY}")
    path = STUDY.record("training", output)
    record = measure_training(task, steps, path)
    rows = [
        [row["cell"], row["stage"], f"{row['seconds']:.1f}", f"{row['history'][-1]['accuracy']:.1%}"]
        for row in record["rows"]
    ]
    console.say(console.table(["cell", "stage", "seconds", "correct"], rows))
    console.say(f"Written to {display_path(path.absolute())}.")
    return 0
