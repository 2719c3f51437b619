"""The sweep: an LSTM over many sizes, by each rung of stage 7 and by cuDNN, in one run on one GPU.

    python -m common.studies.sequence.sweep [--seconds 280] [--output docs/results/sequence_sweep.json]

It writes the record after each size, so that a run that ends early leaves what it has measured. When the time is
over, the sizes that are left are listed as not run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import torch

from ... import console, stages
from ...build.modules import load_stage
from ...cell.call import LOW_PRECISION
from ...errors import UserError
from ...measure.implementations import Implementation, WrongResult, make_input_sets
from ...measure.passes import not_run_entry, time_case
from ...measure.sequence import peers, times
from ...measure.sequence.times import Configuration
from ...paths import display_path
from ...results import records, sources
from ...sequence.rungs import rungs_of

STEPS, BATCHES, STATES = (32, 128, 512), (1, 8, 32, 128), (64, 128, 256, 512, 1024)
NUMBERS = (("bfloat16", "IEEE"), ("float32", "TF32"))  # dtype and maths; the first is measured at every size first
ROUNDS, WARM_UP_ROUNDS, BLOCK_SECONDS = 8, 2, 0.002


def sweep_configurations() -> Iterator[Configuration]:
    """Every size in the first kind of numbers, then every size in the next."""
    for (dtype, maths), T, B, S in product(NUMBERS, STEPS, BATCHES, STATES):
        yield Configuration("lstm", T, B, S, S, dtype, maths)


def measure_sweep(seconds: float, path: Path) -> dict:
    """Measures until all is done or the time is over; writes the record to `path` after each size."""
    start = time.monotonic()
    stage = stages.get_stage(7)
    record = records.start_record(sources.hash_stage(stage)) | {"rows": [], "not_run": []}
    module = load_stage(7, "cuda")
    for configuration in sweep_configurations():
        what = times.describe(configuration, "cuda")
        if time.monotonic() - start > seconds:
            record["not_run"].append(not_run_entry("every implementation", "cuda", what, "the time was over"))
            continue
        try:
            rows, not_run = measure_size(configuration, module)
        except (WrongResult, torch.cuda.OutOfMemoryError) as error:
            rows, not_run = [], [not_run_entry("every implementation", "cuda", what, str(error)[:300])]
            torch.cuda.empty_cache()
        record["rows"] += rows
        record["not_run"] += not_run
        records.save(record, path)
    records.save(record, path)
    return record


def measure_size(configuration: Configuration, module: object) -> tuple[list[dict], list[dict]]:
    """The rows of cuDNN, of each rung and of the chosen one at one size."""
    case = configuration.case("cuda")
    with peers.float32_maths(configuration.maths):
        sets = make_input_sets(case, count=2, tf32=configuration.maths == "TF32")
        peers.flatten_for_cudnn(sets)
        cudnn = Implementation("cuDNN LSTM", peers.by_torch(case), may_fail=case.dtype in LOW_PRECISION)
        found = [cudnn, *peers.stage_rungs(case, module, "cuda", [*rungs_of("cuda", "cuda"), None])]
        what = times.describe(configuration, "cuda")
        rows, not_run = time_case(found, sets, what, ROUNDS, BLOCK_SECONDS, WARM_UP_ROUNDS)
    facts = times.configuration_facts(configuration, "cuda")
    return [row | facts | {"baseline": rows[0]["name"]} for row in rows], not_run


def main() -> int:
    """Runs the sweep; the status is 1 if no size was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=280, help="start no size after so many seconds")
    parser.add_argument("--output", type=Path, default=records.SWEEP_RECORD, help="the record to write")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise UserError("the sweep needs a GPU that torch can use; `make doctor` says why there is none")
    record = measure_sweep(given.seconds, given.output)
    sizes = {(row["T"], row["B"], row["S"], row["dtype"]) for row in record["rows"]}
    console.say(f"{len(sizes)} sizes in {display_path(given.output.absolute())}, {len(record['not_run'])} not run")
    return int(not sizes)


if __name__ == "__main__":
    raise SystemExit(main())
