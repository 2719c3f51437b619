"""Times stages against eager and torch.compile in one run, and times nothing that has not just been checked.

In a round each contender makes the same number of calls, one contender after the other. Every call takes the
next of a few sets of inputs, so that a result which is merely remembered is wrong.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from multiprocessing import get_context
from pathlib import Path

import torch

from . import clock, console, kernels, machine, results, stages
from .case import INPUTS, Case
from .contenders import MODES, Contender, Run, WrongResult, contender_of, input_sets, peers, prepare, warm_up
from .errors import UserError
from .stages import Stage
from .tables import recorded_times

GRADS = {"all": INPUTS, "parameters": ("weights", "bias")}
PASSES = ("forward", "forward+backward")
MATHS = "IEEE"
SMALL, MEDIUM = (16, 32, 128), (64, 1024, 128)  # B, I, S


@dataclass(frozen=True)
class Plan:
    """What is measured: sizes (B, I, S) by device, which inputs need gradients, and for how long."""

    sizes: dict[str, tuple[tuple[int, int, int], ...]]
    grads: tuple[str, ...]
    modes: tuple[str, ...] | None  # of torch.compile beside its default; None: against eager alone
    rounds: int
    block_seconds: float
    kernels: bool = False  # the pointwise kernels alone too, on a GPU


FULL = Plan(
    sizes={"cpu": (SMALL, MEDIUM, (256, 256, 512)), "cuda": (SMALL, MEDIUM, (4096, 1024, 1024))},
    grads=("all", "parameters"),
    modes=MODES[:1],
    rounds=50,
    block_seconds=0.015,
    kernels=True,
)
TOUR = replace(FULL, sizes=dict.fromkeys(FULL.sizes, (SMALL, MEDIUM)), grads=("all",), rounds=30, kernels=False)
GLANCE = replace(TOUR, sizes=dict.fromkeys(FULL.sizes, (SMALL,)), modes=None)


def measure_case(contenders: Sequence[Contender], case: Case, plan: Plan) -> tuple[list[dict], list[dict]]:
    """The rows of all contenders at one size, and who could not run there and why. The first one is eager.

    Raises `WrongResult` for a contender that is wrong before or after it is timed.
    """
    torch._dynamo.reset()  # what was compiled for another size must not be tried first here
    sets = input_sets(case)
    console.say(f"{described(case)}:")
    able, saved, not_run = [], {}, []
    for contender in contenders:
        try:
            with console.step(f"{'compile and check' if contender.compiled else 'check'} {contender.name}"):
                saved[contender.name] = prepare(contender, sets)
        except (WrongResult, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            if not contender.compiled:
                raise
            not_run.append(missing(contender.name, case.device, described(case), first_line(error)))
        else:
            able.append(contender)

    rows = []
    for name in PASSES:
        runs = [Run(contender, sets, backward=name != "forward") for contender in able]
        warm_up(runs)
        with (
            console.step(f"time {name}"),
            torch.compiler.set_stance("fail_on_recompile"),  # compiling is no part of any sample
        ):
            samples = clock.interleave(runs, case.device, plan.rounds, plan.block_seconds)
        for run in runs:
            run.check("after it was timed")
        for contender, taken in zip(able, samples, strict=True):
            facts = facts_of(contender, case) | {"pass": name} | saved[contender.name]
            q1, median, q3 = (round(value, 2) for value in taken.quartiles())
            ratio = round(taken.ratio_to(samples[0]), 4)
            count = len(taken.flat)
            rows.append(facts | {"median": median, "q1": q1, "q3": q3, "samples": count, "ratio": ratio})
    return rows, not_run


def facts_of(contender: Contender, case: Case) -> dict[str, object]:
    """What a row says beside its times."""
    return {
        "name": contender.name,
        "stage": contender.stage,
        "target": contender.target,
        "device": case.device,
        "dtype": str(case.dtype).removeprefix("torch."),
        "maths": MATHS,
        "threads": torch.get_num_threads() if case.device == "cpu" else None,
        "grads": next(name for name, inputs in GRADS.items() if inputs == case.requires_grad),
        "B": case.B,
        "I": case.I,
        "S": case.S,
        "build_seconds": contender.build_seconds,
    }


def measure_size(contenders: Sequence[Contender], case: Case, plan: Plan) -> tuple[list[dict], list[dict]]:
    """`measure_case`, with the batch halved until the memory of the GPU suffices; the change is named."""
    smaller = case
    while smaller.B >= 1:
        try:
            rows, not_run = measure_case(contenders, smaller, plan)
        except torch.cuda.OutOfMemoryError:
            smaller = replace(smaller, B=smaller.B // 2)
        else:
            if smaller != case:
                reason = f"the GPU's memory is too small; measured with B{smaller.B} instead"
                not_run = [missing("every contender", case.device, described(case), reason), *not_run]
            return rows, not_run
        gc.collect()  # outside the handler: there the exception still holds the tensors
        torch.cuda.empty_cache()
    return [], [missing("every contender", case.device, described(case), "not even B1 fits the GPU's memory")]


def measure_device(device: str, wanted: Sequence[Stage], plan: Plan) -> tuple[list[dict], list[dict]]:
    """All rows on CPU or on CUDA tensors, printed as they come, and what could not run."""
    rows, not_run = [], []
    if device == "cuda":  # there, of all cores only the one that launches kernels is part of what is timed
        torch._inductor.config.compile_threads = os.cpu_count()
    with ieee():
        contenders = peers(device, plan.modes)
        for stage in wanted:
            try:
                contenders.append(contender_of(stage, device))
            except UserError as error:
                not_run.append(missing(f"stage {stage.number}", device, "all sizes", first_line(error)))
        for B, I, S in plan.sizes[device]:
            for grads in plan.grads:
                case = Case(B, I, S, device=device, requires_grad=GRADS[grads])
                measured, missed = measure_size(contenders, case, plan)
                console.say("\n" + as_table(measured) + disturbed(measured) + "\n")
                rows += measured
                not_run += missed
    return rows, not_run


@contextmanager
def ieee() -> Iterator[None]:
    """Matrix products in IEEE float32, whatever was set before, and no advice from the compiler to change that."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def missing(name: str, device: str, what: str, reason: str) -> dict[str, str]:
    """An entry of the list of what did not run."""
    return {"name": name, "device": device, "what": what, "reason": reason}


def first_line(error: Exception) -> str:
    """An exception as one line of at most 200 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]


def described(case: Case) -> str:
    """A case as it is printed."""
    grads = "all inputs" if case.requires_grad == INPUTS else "weights and bias"
    return f"B{case.B} I{case.I} S{case.S} on {case.device.upper()} tensors, gradients for {grads}"


def as_table(rows: Sequence[dict]) -> str:
    """The rows of one size as a table: a line a contender, its two passes side by side."""
    header = ["", "forward", "to eager", "forward+backward", "to eager", "saved for backward"]
    lines = []
    for row in rows:
        if row["pass"] != "forward":
            continue
        both = next(r for r in rows if r["name"] == row["name"] and r["pass"] != "forward")
        cells = [f(r) for r in (row, both) for f in (time_of, lambda r: f"{r['ratio']:.2f}")]
        lines.append([row["name"], *cells, results.size_in_memory(row)])
    return console.table(header, lines)


def disturbed(rows: Sequence[dict]) -> str:
    """A remark when the samples of a CPU's rows lie further apart than a quiet machine's do."""
    if all(row["device"] != "cpu" or row["q3"] < 1.3 * row["q1"] for row in rows):
        return ""
    return "\n  The quartiles lie far apart: something else is running here, and a second run may tell otherwise."


def time_of(row: dict) -> str:
    """A median with its quartiles, in microseconds."""
    digits = 1 if row["median"] < 1000 else 0
    median, q1, q3 = (f"{row[name]:,.{digits}f}" for name in ("median", "q1", "q3"))
    return f"{median} us ({q1} to {q3})"


# The commands ------------------------------------------------------------------------------------------


def measure(plan: Plan, devices: Sequence[str], wanted: Sequence[Stage], output: Path | None) -> dict:
    """Measures the stages by a plan on the given devices and returns the result; also writes it to `output`.

    Each device is measured in a process of its own: a process can hold only one target of a stage.
    """
    result = {
        "schema": results.SCHEMA,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "quick": plan.rounds < FULL.rounds,
        "machine": machine.machine(),
        "versions": machine.versions(),
        "sources": {str(stage.number): results.source_hash(stage) for stage in [stages.find(1), *wanted]},
        "rows": [],
        "kernels": [],
        "not_run": [],
    }

    def add(what: str, function: Callable, *arguments: object) -> None:
        rows, missed = in_a_process(function, *arguments)
        result[what] += rows
        result["not_run"] += missed
        if output:
            results.write(result, output)  # a later part may take the machine along

    if "cuda" in devices:
        add("rows", measure_device, "cuda", wanted, plan)
    else:
        result["not_run"].append(missing("every contender", "cuda", "all sizes", "no GPU that torch can use"))
    if plan.kernels and "cuda" in devices:
        add("kernels", kernels.measure, [stage for stage in wanted if stage.pointwise_tensors])
    if "cpu" in devices:
        add("rows", measure_device, "cpu", wanted, plan)
    for entry in result["not_run"]:
        console.say(f"  not run: {entry['name']}, {entry['what']} ({entry['device']}): {entry['reason']}")
    if "cuda" not in devices:
        for stage in wanted:
            if only_emulated(stage):
                console.say("\n" + recorded_times(stage))
    return result


def in_a_process(function: Callable, *arguments: object) -> tuple[list[dict], list[dict]]:
    """`function(*arguments)` in a fresh process. Raises `UserError` when the process is killed."""
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(function, *arguments).result()
    except BrokenProcessPool:
        raise UserError("the measuring process was killed; the usual cause is too little memory") from None


def here() -> list[str]:
    """The devices whose tensors can be measured on this machine."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def bench(quick: bool = False, output: str | None = None, tuned: bool = False) -> int:
    """The full measurement of every stage on CPU tensors and, where there is a GPU, on CUDA tensors.

    `tuned`: against torch.compile's max-autotune too, which takes minutes to make its choices.
    """
    path = Path(output) if output else results.MEASURED
    console.say(f"Times are medians (with quartiles) in microseconds; {MATHS} float32. Let nothing run beside this.")
    plan = TOUR if quick else FULL
    measure(replace(plan, modes=MODES) if tuned else plan, here(), stages.cells(), path)
    console.say(f"\nWritten to {results.shown(path)}; `make report` draws it.")
    return 0


def tour(wanted: Sequence[Stage]) -> dict:
    """The measurement of `make tour`: two sizes, on the GPU if there is one; kept in out/bench.json."""
    cells = [stage for stage in wanted if stage.kind == "cell"]
    return measure(TOUR, here()[-1:], cells, results.MEASURED)


def only_emulated(stage: Stage) -> bool:
    """Whether nothing but the emulator runs a stage on CPU tensors."""
    return "host" not in stage.targets and "emulator" in stage.targets


def glance(stage: Stage, target: str, device: str) -> list[dict]:
    """A stage against eager at the small size, in seconds and in this process: the end of `make stage-N`.

    On the emulator nothing is timed; what other machines have recorded is shown.
    """
    if target == "emulator":
        console.say("\n" + recorded_times(stage))
        return []
    with ieee():
        contenders = [*peers(device, GLANCE.modes), contender_of(stage, device)]
        (B, I, S), *_ = GLANCE.sizes[device]
        case = Case(B, I, S, device=device)
        rows, _ = measure_case(contenders, case, GLANCE)
    console.say("\n" + as_table(rows) + disturbed(rows))
    return rows
