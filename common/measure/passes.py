"""Times both passes of some implementations of one function. Each is checked right before and after it is timed.

In a round each implementation makes the same number of calls, one implementation after the other. Every call takes
the next of a few sets of inputs, so an implementation that returns an earlier result is detected.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .. import console
from ..results.formatting import PASSES
from . import clock
from .clock import Samples
from .implementations import Implementation, InputSet, Run, WrongResult, compile_and_check, warm_up


def time_case(
    implementations: Sequence[Implementation],
    sets: Sequence[InputSet],
    what: str,
    rounds: int,
    block_seconds: float,
    warm_up_rounds: int = clock.WARM_UP_ROUNDS,
) -> tuple[list[dict], list[dict]]:
    """The rows of all implementations for one case, `what`; and which of them could not run and why.

    Ratios are to the first implementation that runs. Raises `WrongResult` if an implementation is wrong before or
    after it is timed.
    """
    torch._dynamo.reset()  # code compiled for another size must not be tried first
    console.say(f"{what}:")
    device = sets[0].case.device
    able, saved, not_run = [], {}, []
    for implementation in implementations:
        try:
            with console.step(f"{'compile and check' if implementation.compiled else 'check'} {implementation.name}"):
                saved[implementation.name] = compile_and_check(implementation, sets)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            may_fail = implementation.compiled and not isinstance(error, WrongResult)
            if not (may_fail or implementation.may_fail):
                raise
            not_run.append(not_run_entry(implementation.name, device, what, first_line(error)))
        else:
            able.append(implementation)

    rows = []
    for name in PASSES:
        runs = [Run(implementation, sets, backward=name != "forward") for implementation in able]
        warm_up(runs)
        with (
            console.step(f"time {name}"),
            torch.compiler.set_stance("fail_on_recompile"),  # no sample may include compilation
        ):
            samples = clock.interleave(runs, device, rounds, block_seconds, warm_up_rounds)
        for run in runs:
            run.check("after it was timed")
        for implementation, taken in zip(able, samples, strict=True):
            facts = implementation_facts(implementation) | {"pass": name} | saved[implementation.name]
            rows.append(facts | time_facts(taken, samples[0]))
    return rows, not_run


def implementation_facts(implementation: Implementation) -> dict[str, object]:
    """The fields of a row that describe its implementation."""
    return {
        "name": implementation.name,
        "stage": implementation.stage,
        "target": implementation.target,
        "build_seconds": implementation.build_seconds,
    }


def time_facts(taken: Samples, first: Samples) -> dict[str, object]:
    """The fields of a row that describe its times, in microseconds, and their ratio to the first implementation's."""
    q1, median, q3 = (round(value, 2) for value in taken.quartiles())
    ratio = round(taken.ratio_to(first), 4)
    return {"median": median, "q1": q1, "q3": q3, "samples": len(taken.flat), "ratio": ratio}


def not_run_entry(name: str, device: str, what: str, reason: str) -> dict[str, str]:
    """An entry of the list of what did not run."""
    return {"name": name, "device": device, "what": what, "reason": reason}


def first_line(error: Exception) -> str:
    """An exception as one line of at most 200 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]
