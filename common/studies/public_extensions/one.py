"""Builds one extension for the emulator, calls it and prints the outcome as JSON: FOLDER EXTENSION TRIAL."""

from __future__ import annotations

import json
import os
import sys
import sysconfig

import torch

from ...emulator import load_extension
from ...errors import UserError
from . import trials


def outcome_of(folder: str, extension: str, trial: str) -> tuple[str, str]:
    """The outcome and its reason, which is empty for a right result."""
    os.environ["FORCE_CUDA"] = "1"  # before setup.py runs
    try:
        module = load_extension(folder, extension)
    except UserError as error:
        lines = str(error).strip().replace(f"{sysconfig.get_path('purelib')}/", "").splitlines()
        return "does not build", " ".join(" ".join(lines[:2]).split())[:300]
    torch.manual_seed(1)
    try:
        getattr(trials, trial)(module)
    except AssertionError as error:
        return "wrong", " ".join(str(error).split())[:300]
    except RuntimeError as error:  # a report of the emulator
        return "reported", " ".join(str(error).split())[:500]
    return "right", ""


if __name__ == "__main__":
    outcome, reason = outcome_of(*sys.argv[1:])
    print(json.dumps({"outcome": outcome, "reason": reason}))
