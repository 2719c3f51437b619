"""The workbook's tools, which no lesson is about: table of stages, build, check, bench, plots and command line.

Importing this package does not import torch, so that `python -m common doctor` works before torch is installed.
"""

from __future__ import annotations

import logging
from types import ModuleType

# On a machine with nvcc but no GPU, torch prints a warning at every import. `make doctor` reports this instead.
logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)


def load(number: int, target: str | None = None) -> ModuleType:
    """The Python module of a stage, built first if needed; `load(2).lltm(...)` calls the cell.

    `load(0)` is stage 0's package, which has no cell: `load(0).functions`.

    `target` is one of `cuda`, `host` and `emulator`; without it, the best that this machine can run.
    Raises `common.errors.UserError` if the stage does not exist, cannot run on this machine, or does not build.
    """
    from .build.modules import load_stage as build_and_import

    return build_and_import(number, target)
