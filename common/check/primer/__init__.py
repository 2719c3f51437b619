"""`make stage-0`: every check of the primer, one line each. Each part lists its own checks in `CHECKS`."""

from __future__ import annotations

from types import ModuleType

import torch

from ...cell.case import fresh_seed
from ...console import say
from ..lines import run_check
from ..subject import Result
from . import autograd, conv_batchnorm, overrides

PARTS: tuple[ModuleType, ...] = (autograd, overrides, conv_batchnorm)


def check_primer(seed: int | None = None) -> list[Result]:
    """Runs every check and prints its result; without a seed, with new random numbers."""
    seed = fresh_seed() if seed is None else seed
    results, threads = [], torch.get_num_threads()
    torch.set_num_threads(1)  # the tensors are small, and in the tour, compilers use the other cores
    try:
        for part in PARTS:
            say(f"  {part.__doc__.partition('.')[0]}")
            results += [run_check(0, one, seed) for one in part.CHECKS]
    finally:
        torch.set_num_threads(threads)
    return results
