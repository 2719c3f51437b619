"""`make sequence-check`: checks stage 7 on a target and shows every failure, for work on its kernels.

`make stage-7` shows the first failure. A kernel that never ends would keep the GPU: after --seconds, the process
shows where it was and ends.
"""

from __future__ import annotations

import faulthandler
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from ... import console, stages
from ...build import library, targets
from ...check.harness import make_subjects
from ...check.sequence import SequenceSubject
from ...check.subject import Result, check_subject
from ...results import records


def check_rungs(target: str, rungs: Sequence[str], dtypes: Sequence[str], seed: int | None) -> list[Result]:
    """Every check of some rungs (by default all) and dtypes; prints a line for each, and each failure."""
    results = []
    for subject in make_subjects(7, target, seed):
        dtype = str(subject.dtype).removeprefix("torch.")
        if isinstance(subject, SequenceSubject) and subject.rung in (rungs or [subject.rung]) and dtype in dtypes:
            with console.step(f"{subject.label} on {subject.device.upper()} tensors"):
                rows = check_subject(subject)
            for row in rows:
                if row.outcome == "failed":
                    console.say(f"    FAILED {row.name}: {row.message}")
            results += rows
    return results


def check_sequence(
    target: str | None,
    rungs: Sequence[str],
    dtypes: Sequence[str] | None,
    seed: int | None,
    seconds: float,
    output: str | None,
) -> int:
    """Builds, checks, and prints the slowest checks; the status is 1 if one fails or if there are none."""
    stage = stages.get_stage(7)
    faulthandler.dump_traceback_later(seconds, exit=True)
    start, target = time.monotonic(), targets.choose_target(stage, target)
    with console.step(f"build for {target}"):
        library.build_stage(stage, target)
    results = check_rungs(target, rungs, dtypes or stage.dtypes, seed)
    if output:
        records.save_text(json.dumps([asdict(row) for row in results], indent=1), Path(output))
    counts = {outcome: sum(row.outcome == outcome for row in results) for outcome in ("passed", "failed", "not run")}
    where = torch.cuda.get_device_name() if target == "cuda" else target
    console.say(f"{counts} on {where}, in {time.monotonic() - start:.0f} s; the slowest checks:")
    for row in sorted(results, key=lambda row: -row.seconds)[:5]:
        console.say(f"  {row.seconds:5.1f} s  {row.dtype}: {row.name}")
    return int(bool(counts["failed"]) or not counts["passed"])
