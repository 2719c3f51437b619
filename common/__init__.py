"""What no lesson is about: the table of stages, build, check, bench, plots and the command line.

Importing this package imports nothing heavy, so that `python -m common doctor` works before torch is there.
"""

from __future__ import annotations

import logging
from types import ModuleType

# torch warns at every import that nvcc is there and a GPU is not. `make doctor` says so where it matters.
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)


def load(number: int, target: str | None = None) -> ModuleType:
    """The Python module of a stage, built first if needed; `load(2).lltm(...)` calls the cell.

    `load(0)` is stage 0's package, which has no cell: `load(0).functions`.

    `target` is one of `cuda`, `host` and `emulator`; without it, the best that this machine can run.
    Raises `common.errors.UserError` when the stage is not here, cannot run here, or does not build.
    """
    from .build.modules import load_stage as build_and_import

    return build_and_import(number, target)
