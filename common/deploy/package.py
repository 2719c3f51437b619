"""Trains stage 8's model, exports it as a package, and caches the result."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..build.modules import load_stage
from ..emulator import build_once
from ..paths import build_cache
from ..stages import get_stage

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Deployed:
    """A package, with the library of its operators and the weights beside it; and the same model in Python."""

    path: Path

    @cached_property
    def model(self) -> torch.nn.Module:
        """The model in eager mode, with the weights of the package."""
        import torch

        model = stage_module("train").make_model(_operators().lltm_sequence)
        model.load_state_dict(torch.load(self.path.parent / stage_module("export").WEIGHTS))
        return model.eval()


def stage_module(name: str) -> ModuleType:
    """A module of stage 8, such as `export`."""
    load_stage(8)
    return importlib.import_module(f"{get_stage(8).package}.{name}")


def build_package() -> Deployed:
    """The package of the trained model; trains and exports it unless that has been done."""
    final = build_cache().find("lltm_package", package_key())
    build_once(final, lambda work, lock: train_and_export(work))
    return Deployed(final / stage_module("export").PACKAGE)


def train_and_export(folder: Path) -> None:
    """Trains the model and writes its package, in less than half a minute."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the training has small batches
    try:
        model = stage_module("train").train_model(_operators().lltm_sequence)
    finally:
        torch.set_num_threads(threads)
    stage_module("export").export_model(model, Path(_operators()._C.__file__), folder)


def package_key() -> str:
    """A hash of everything that the package depends on; the library's path contains the hash of its sources."""
    import torch

    parts = [torch.__version__, str(_operators()._C.__file__), torch.backends.cpu.get_cpu_capability()]
    digest = hashlib.sha256("\0".join(parts).encode())
    for path in sorted(get_stage(8).folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _operators() -> ModuleType:
    """Stage 7, with the operators of its `host` build: the program runs on CPUs."""
    return load_stage(7, "host").sequence
