"""The sweep: an LSTM and a GRU over many sizes, by each rung of stage 7 and by cuDNN, on one kind of GPU.

`make sequence-sweep` records docs/results/studies/sequence_sweep.json. Several GPUs of a machine measure a size each
at the same time. The record is written after each size. When the time is over, the sizes that are left are listed as
not run; with the same sources on the same kind of GPU, the next run measures only those.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import torch

from ... import console, stages
from ...build.library import build_stage
from ...build.modules import load_stage
from ...errors import UserError
from ...measure.bench import new_process
from ...measure.implementations import Implementation, WrongResult, make_input_sets
from ...measure.passes import not_run_entry, time_case
from ...measure.sequence import peers, times
from ...measure.sequence.times import Configuration
from ...paths import display_path
from ...results import records, sources
from ...sequence.rungs import rungs_of
from . import STUDY

STEPS, BATCHES, STATES = (32, 128, 512), (1, 8, 32, 128), (64, 128, 256, 512, 1024)
# The LSTM in bfloat16 at every size, then the others with this many steps.
OTHERS = (("gru", "bfloat16", "IEEE"), ("lstm", "float32", "TF32"), ("lstm", "float32", "IEEE"))
STEPS_OF_OTHERS = 128
ROUNDS, WARM_UP_ROUNDS, BLOCK_SECONDS = 8, 2, 0.002


def sweep_configurations() -> Iterator[Configuration]:
    """Every size of the sweep."""
    for T, B, S in product(STEPS, BATCHES, STATES):
        yield Configuration("lstm", T, B, S, S, "bfloat16", "IEEE")
    for (cell, dtype, maths), B, S in product(OTHERS, BATCHES, STATES):
        yield Configuration(cell, STEPS_OF_OTHERS, B, S, S, dtype, maths)


def measure_sweep(seconds: float, path: Path) -> dict:
    """Measures until all is done or the time is over; writes the record to `path` after each size."""
    deadline, lock = time.monotonic() + seconds, threading.Lock()
    record = continue_record(path)
    measured = {size_of(row) for row in record["rows"]}
    remaining = iter([one for one in sweep_configurations() if size_of(vars(one)) not in measured])
    build_stage(stages.get_stage(7), "cuda")

    def measure_on(gpu: int) -> None:
        with new_process() as run:
            run(torch.cuda.set_device, gpu)
            while time.monotonic() < deadline:
                with lock:
                    configuration = next(remaining, None)
                if configuration is None:
                    return
                rows, not_run = run(measure_size, configuration)
                with lock:
                    record["rows"] += rows
                    record["not_run"] += not_run
                    records.save(record, path)

    run_on_each_gpu(measure_on)
    for configuration in remaining:
        what = times.describe(configuration, "cuda")
        record["not_run"].append(not_run_entry("every implementation", "cuda", what, "the time was over"))
    records.save(record, path)
    return record


def continue_record(path: Path) -> dict:
    """The record at `path`, if it is of these sources and this kind of GPU; otherwise a new one.

    Sizes that it lists as not run are not in it, so that they are tried again.
    """
    record = records.start_record(sources.hash_stage(stages.get_stage(7))) | {"rows": [], "not_run": []}
    if not path.exists():
        return record
    before = json.loads(path.read_text())
    same = all(before[name] == record[name] for name in ("sources", "versions"))
    if not same or before["machine"]["gpu"] != record["machine"]["gpu"]:
        return record
    kept = [entry for entry in before["not_run"] if entry["name"] != "every implementation"]
    return before | {"date": record["date"], "not_run": kept}


def size_of(facts: dict) -> tuple:
    """What tells the sizes of the sweep apart: of a row, or of a configuration's fields."""
    return tuple(facts[name] for name in ("cell", "T", "B", "S", "dtype", "maths"))


def run_on_each_gpu(function: Callable[[int], None]) -> None:
    """Calls a function in a thread for each GPU, with its number."""
    count = torch.cuda.device_count()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(function, range(count)))


def measure_size(configuration: Configuration) -> tuple[list[dict], list[dict]]:
    """The rows of cuDNN, of each rung and of the chosen one at one size, and what could not run."""
    what = times.describe(configuration, "cuda")
    try:
        rows, not_run = time_size(configuration, what)
    except (WrongResult, torch.cuda.OutOfMemoryError) as error:
        torch.cuda.empty_cache()
        return [], [not_run_entry("every implementation", "cuda", what, str(error)[:300])]
    facts = times.configuration_facts(configuration, "cuda")
    return [row | facts | {"baseline": rows[0]["name"]} for row in rows], not_run


def time_size(configuration: Configuration, what: str) -> tuple[list[dict], list[dict]]:
    """The same without the facts that all rows share."""
    case, module = configuration.case("cuda"), load_stage(7, "cuda")
    with peers.float32_maths(configuration.maths):
        sets = make_input_sets(case, count=2, tf32=configuration.maths == "TF32")
        peers.flatten_for_cudnn(sets)
        name = f"cuDNN {configuration.cell.upper()}"
        cudnn = Implementation(name, peers.by_torch(case), may_fail=True)  # too inexact at small states in IEEE
        rungs = peers.stage_rungs(case, module, "cuda", [*rungs_of("cuda", "cuda"), None])
        return time_case([cudnn, *rungs], sets, what, ROUNDS, BLOCK_SECONDS, WARM_UP_ROUNDS)


def record_sweep(seconds: float, output: str | None = None) -> int:
    """Runs the sweep and writes the record (by default in docs/results/studies/); 1 if no size was measured."""
    if not torch.cuda.is_available():
        raise UserError("the sweep needs a GPU that torch can use; `make doctor` says why there is none")
    path = STUDY.record("sweep", output)
    record = measure_sweep(seconds, path)
    sizes = {size_of(row) for row in record["rows"]}
    console.say(f"{len(sizes)} sizes in {display_path(path.absolute())}, {len(record['not_run'])} not run")
    return int(not sizes)
