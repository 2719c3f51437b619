"""Trains stage 8's model, exports it as a package, and caches the result."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..build.modules import load_stage
from ..emulator import build_once
from ..key import Key
from ..paths import ROOT, build_cache
from ..stages import get_stage

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Deployed:
    """A package, with the library of its operators and the weights beside it; and the same model in Python."""

    path: Path
    device: str = "cpu"

    @cached_property
    def model(self) -> torch.nn.Module:
        """The model in eager mode, with the weights of the package, on its device."""
        import torch

        model = stage_module("train").make_model(_operators(self.device).lltm_sequence)
        model.load_state_dict(torch.load(self.path.parent / stage_module("export").WEIGHTS))
        return model.to(self.device).eval()

    def arguments(self, sequence: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The arguments of the model for a batch of one sequence (T, I), on its device."""
        lengths = sequence.new_tensor([len(sequence)]).long()
        return sequence[None].to(self.device), lengths.to(self.device), *self.model.first_state(1)

    def scores(self, sequence: torch.Tensor) -> torch.Tensor:
        """The scores (C) of a sequence (T, I) by the model in eager mode, as a CPU tensor."""
        import torch

        with torch.inference_mode():
            return self.model(*self.arguments(sequence))[0][0].cpu()


def stage_module(name: str) -> ModuleType:
    """A module of stage 8, such as `export`."""
    load_stage(8)
    return importlib.import_module(f"{get_stage(8).package}.{name}")


def build_package(device: str = "cpu") -> Deployed:
    """The package of the trained model for a device; trains and exports it unless that has been done."""
    return _find_or_build(device, _train_apart)


def build_packages_apart() -> list[subprocess.Popen]:
    """Starts a process for each device here that builds its package. They print nothing: who needs one repeats it."""
    quiet = subprocess.DEVNULL
    return [
        subprocess.Popen([*_python("build_here"), device], cwd=ROOT, stdin=quiet, stdout=quiet, stderr=quiet)
        for device in devices()
    ]


def build_here(device: str) -> None:
    """Builds the package for a device in this process."""
    _find_or_build(device, train_and_export)


def devices() -> list[str]:
    """The kinds of devices here: `cpu`, and `cuda` if torch finds a GPU."""
    import torch

    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def _find_or_build(device: str, build: Callable[[Path, str], None]) -> Deployed:
    final = build_cache().find(f"lltm_package-{device}", package_key(device))
    build_once(final, lambda work, lock: build(work, device))
    return Deployed(final / stage_module("export").PACKAGE, device)


def _train_apart(folder: Path, device: str) -> None:
    """`train_and_export` in a process: other threads of this one may draw from torch's generator meanwhile."""
    command = [*_python("train_and_export"), str(folder), device]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"stage 8's model was not trained and exported:\n{done.stderr}")


def _python(function: str) -> list[str]:
    """The command that calls a function of this module with the arguments that follow."""
    return [sys.executable, "-c", f"import sys; from {__name__} import {function}; {function}(*sys.argv[1:])"]


def train_and_export(folder: str | Path, device: str) -> None:
    """Trains the model on the CPU and writes its package for a device, in less than half a minute."""
    import torch

    operators, threads = _operators(device), torch.get_num_threads()
    torch.set_num_threads(1)  # the training has small batches
    try:
        model = stage_module("train").train_model(operators.lltm_sequence)
    finally:
        torch.set_num_threads(threads)
    stage_module("export").export_model(model.to(device), Path(operators._C.__file__), Path(folder))


def package_key(device: str) -> str:
    """A hash of everything that the package depends on; the library's path contains the hash of its sources."""
    import torch

    hardware = torch.cuda.get_device_name() if device == "cuda" else torch.backends.cpu.get_cpu_capability()
    parts = [torch.__version__, str(_operators(device)._C.__file__), device, hardware]
    folder = get_stage(8).folder
    return Key(*parts).add_files(folder.glob("*.py"), folder).text


def _operators(device: str) -> ModuleType:
    """Stage 7, with the operators for a device. Those of the `cuda` build run on the CPU, too."""
    return load_stage(7, "cuda" if device == "cuda" else "host").sequence
