"""How stage 9 scales: the time of a training step on 1, 2, 4, ... GPUs, and the share of it that is communication.

`make distributed-scaling` records docs/results/studies/distributed_scaling.json. Weak scaling gives each process the
same number of samples, strong scaling divides the same batch among them. The network has several layers, so that
gradients of one can travel while backward computes those of another. A step is also recorded as torch.profiler saw
it: when kernels computed, and when NCCL's moved gradients. Before anything is timed, gradients of several processes
are compared with those of one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from ... import console, stages
from ...build import library, modules, targets
from ...check.distributed import ROUNDING, workers
from ...check.distributed.launching import launch
from ...errors import UserError
from ...measure.gpu_trace import read_events
from ...paths import display_path
from ...results import records, sources
from . import STUDY
from .traces import measure_communication

STEPS = 64  # of each sample: digits are read pixel by pixel
SAMPLES = 64  # in the batch whose gradients are compared
TRACED = 3  # training steps under the profiler; the last is recorded
KINDS = {"kernel", "gpu_memcpy", "gpu_memset"}


@dataclass(frozen=True)
class Plan:
    """The network; the samples of a process (weak scaling) and of all together (strong); and how often to measure."""

    layers: int = 4
    state: int = 512
    weak_batch: int = 128
    strong_batch: int = 256
    warm_up: int = 10
    rounds: int = 7
    calls: int = 10


class Stack(nn.Module):
    """Layers of a recurrent module, one above the other, with the call of one."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, object]:
        """Shapes: inputs (T, B, I), outputs (T, B, S)."""
        state: object = None
        for layer in self.layers:
            inputs, state = layer(inputs)
        return inputs, state


def measure_scaling(device: str, counts: Sequence[int], path: Path, plan: Plan) -> dict:
    """Measures weak and strong scaling with these numbers of processes, and writes the record."""
    stage = stages.get_stage(7)
    library.build_stage(stage, targets.choose_target(stage, None))
    gradients = [compare_gradients(device, count) for count in counts if count > 1]
    rows, traces = [], {}
    for kind, count in product(("weak", "strong"), counts):
        batch = plan.weak_batch * count if kind == "weak" else plan.strong_batch
        with console.step(f"{kind} scaling, {count} processes, batch {batch}"), tempfile.TemporaryDirectory() as logs:
            found = launch(measure_steps, count, device, batch, plan, logs=Path(logs))[0]
        traces[f"{kind} {count}"] = found.pop("trace")
        rows.append({"scaling": kind, "processes": count, "batch": batch, **found})
    record = records.start_record({"9": sources.hash_stage(stages.get_stage(9)), "7": sources.hash_stage(stage)})
    record |= {"device": device, "steps": STEPS, "plan": asdict(plan)}
    record |= {"gradients": gradients, "rows": rows, "traces": traces}
    records.save(record, path)
    return record


def compare_gradients(device: str, count: int) -> dict:
    """The gradients of a batch in float64 from `count` processes, against one process's.

    "equal" says whether they are, bit for bit, the sum over the shares of all processes; "difference" is how much
    they differ from those of the whole batch, relative to the largest. Raises `UserError` if that is more than
    rounding.
    """
    with console.step(f"gradients of {count} processes"), tempfile.TemporaryDirectory() as logs:
        found = launch(workers.gradients, count, "lltm", "7", SAMPLES, device, logs=Path(logs))
    difference = max(each for _, each in found)
    if difference > ROUNDING:
        raise UserError(f"the gradients of {count} processes differ by {difference:.1e} from those of one")
    return {"processes": count, "equal": all(equal for equal, _ in found), "difference": difference}


def measure_steps(device: str, batch: int, plan: Plan) -> dict:
    """Runs in each process: the time of a step, and what communication adds to it. All times in microseconds."""
    processes = modules.load_stage(9).Processes.from_environment(120.0)
    place = processes.device(device)
    with processes.connected({}):
        training = make_training(processes, place, batch, plan)
        rows = torch.arange(batch) % len(training.train.inputs)
        for _ in range(plan.warm_up):
            training.update(rows)
        step_times = [time_of_step(training, rows, plan.calls) for _ in range(plan.rounds)]
        intervals = trace_step(training, rows) if place.type == "cuda" else []
    return {
        "step": round(statistics.median(step_times), 1),
        "parameters": sum(parameter.numel() for parameter in training.network.parameters()),
        **measure_communication(intervals),
        "trace": [[kind, round(start, 1), round(end, 1)] for kind, start, end in intervals],
    }


def make_training(processes: object, place: torch.device, batch: int, plan: Plan) -> object:
    """Stage 9's training of a stack of stage 7's LLTM, in one of the connected processes."""
    stage9, stage7 = modules.load_stage(9), modules.load_stage(7)
    samples = stage9.make_task("digits", length=STEPS, seed=0, data=None)
    torch.manual_seed(0)
    sizes = [samples.input_size, *[plan.state] * plan.layers]
    stack = Stack([stage9.LLTM(stage7, I, S) for I, S in pairwise(sizes)])
    network = stage9.Network(stack, plan.state, samples.output_size)
    return stage9.Training(samples, network, processes, place, batch_size=batch, learning_rate=1e-3, seed=0)


def time_of_step(training: object, rows: torch.Tensor, calls: int) -> float:
    """The time of a step in microseconds, from a number of them."""
    wait_for(training.device)
    start = time.perf_counter()
    for _ in range(calls):
        training.update(rows)
    wait_for(training.device)
    return (time.perf_counter() - start) / calls * 1e6


def wait_for(place: torch.device) -> None:
    """Waits until a GPU has finished; a CPU has."""
    if place.type == "cuda":
        torch.cuda.synchronize(place)


def trace_step(training: object, rows: torch.Tensor) -> list[tuple[str, float, float]]:
    """What the GPU did in one step: ("compute" or "communication", start, end), from the step's first work on."""
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        for number in range(TRACED):
            with torch.profiler.record_function(f"training step {number}"):
                training.update(rows)
                torch.cuda.synchronize(training.device)
    return intervals_of(read_events(profiler), f"training step {TRACED - 1}")


def intervals_of(events: Sequence[dict], step: str) -> list[tuple[str, float, float]]:
    """The GPU's work that began during a step, in order; times count from the first of it."""
    (span,) = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == step]
    began, ended = span["ts"], span["ts"] + span["dur"]
    work = sorted(
        (e for e in events if e.get("cat") in KINDS and began <= e["ts"] <= ended), key=lambda e: (e["ts"], e["dur"])
    )
    return [
        (
            "communication" if e["name"].startswith("nccl") else "compute",
            e["ts"] - work[0]["ts"],
            e["ts"] - work[0]["ts"] + e["dur"],
        )
        for e in work
    ]


def process_counts(gpus: int) -> list[int]:
    """1, 2, 4 and so on, as many as there are GPUs."""
    return [2**k for k in range(gpus.bit_length()) if 2**k <= gpus]


def record_scaling(output: str | None = None) -> int:
    """Measures on all GPUs, writes the record (by default in docs/results/studies/) and prints it; always 0."""
    if (gpus := torch.cuda.device_count()) < 2:
        raise UserError(f"scaling needs 2 GPUs or more, and torch finds {gpus} here")
    path = STUDY.record("scaling", output)
    record = measure_scaling("cuda", process_counts(gpus), path, Plan())
    rows = [
        [row["scaling"], str(row["processes"]), str(row["batch"])]
        + [f"{row[name] / 1e3:.2f}" for name in ("step", "communication", "not_hidden")]
        for row in record["rows"]
    ]
    console.say(console.table(["scaling", "GPUs", "batch", "step, ms", "communication, ms", "not hidden, ms"], rows))
    console.say(f"Written to {display_path(path.absolute())}.")
    return 0
