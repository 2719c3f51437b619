"""For checks of whole CUDA programs, which take numbers as arguments and print numbers, run on the emulator.

from common.exercises.judging.programs import printed

def check(work):
    got, counted = printed(work, "scale.cu", [3, 70, x], (3, 70), "B=3, S=70")
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ...emulator import Counted
from ..failures import Failure
from .work import ProgramRun, Work

NO_LAUNCH = "no kernel was launched"
NO_PROBLEM = "no problem found"  # and no check was disabled
OUTPUT = 3  # lines that are shown of an output other than numbers


def printed(
    work: Work,
    file: str,
    arguments: Sequence[object],
    shape: Sequence[int],
    case: str,
    dtype: torch.dtype = torch.float32,
    **variables: str,
) -> tuple[Tensor, Counted]:
    """The numbers that a program prints, as a tensor of this shape, and the memory accesses of its kernels.

    A tensor among the arguments is passed number by number. `case` describes the arguments in messages. Raises
    `Failure` with the emulator's report if it found a mistake, and if the output is not the expected numbers.
    """
    ran = work.program(file, *format_arguments(arguments), counting=True, **variables)
    text = require_clean_run(ran, case, variables.get("EMULATOR_CHECKS", ""))
    read, exact = (float, torch.float64) if dtype.is_floating_point else (int, torch.int64)
    try:
        numbers = torch.tensor([read(word) for word in text.split()], dtype=exact)
    except (ValueError, OverflowError, RuntimeError):
        lines = "\n".join(f"  | {line}" for line in text.splitlines()[:OUTPUT])
        raise Failure(f"{case}: the program prints something other than numbers:\n{lines}") from None
    if len(numbers) != math.prod(shape):
        raise Failure(f"{case}: the program prints {len(numbers)} numbers, expected {math.prod(shape)}")
    return numbers.to(dtype).view(*shape), ran.counted


def require_clean_run(ran: ProgramRun, case: str, checks: str = "") -> str:
    """What a program printed. Raises `Failure` unless its status is 0 and the emulator found nothing.

    `checks`: the value of EMULATOR_CHECKS that the program was run with, such as "-launch".
    """
    text, found, report = ran.output.partition("the emulator found:")
    if found:
        raise Failure(f"{case}: {found}{report}")
    text, mark, verdict = ran.output.rpartition("emulator: ")
    if not mark:
        text, verdict = ran.output, ""
    if ran.status is None:
        raise Failure(f"{case}: the program did not finish in time")
    if ran.status != 0:
        raise Failure(f"{case}: the program exits with status {ran.status}\n{text}".rstrip())
    if verdict.startswith(NO_LAUNCH):
        raise Failure(f"{case}: {NO_LAUNCH}: the results must come from a kernel")
    ending = NO_PROBLEM + f"; checks switched off: {checks[1:]}" * bool(checks)
    if not verdict.endswith(ending) or ran.counted is None:
        raise Failure(f"{case}: {verdict or 'the program ends early'}")
    return text


def format_arguments(arguments: Sequence[object]) -> list[str]:
    """Arguments for a command line."""
    return [
        str(number) for one in arguments for number in (one.flatten().tolist() if isinstance(one, Tensor) else [one])
    ]
