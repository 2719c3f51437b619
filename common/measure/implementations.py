"""The implementations that are timed: eager, torch.compile and the stages. Each pass is checked before and after."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType

import torch

from ..build.library import build_stage
from ..build.modules import load_stage
from ..build.targets import devices_of, has_cpp
from ..cell.case import INPUTS, Case, Cell, difference, expected, nan_in_fresh_memory
from ..cell.memory import saved_storages
from ..errors import UserError
from ..paths import ROOT
from ..stages import Stage, find_stage

# Compiled code is kept for the next run, and no compiler's worker waits beside a measurement.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(ROOT / "build" / "inductor"))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
# Of the kernels that it tries for a product it would print each, and what is wrong with those that cannot run.
os.environ.setdefault("TORCHINDUCTOR_AUTOTUNE_NUM_CHOICES_DISPLAYED", "0")
os.environ.setdefault("TORCHINDUCTOR_MAX_AUTOTUNE_REPORT_CHOICES_STATS", "0")
logging.getLogger("torch._inductor.select_algorithm").setLevel(logging.CRITICAL)


class WrongResult(UserError):
    """An implementation disagrees with the float64 reference, so that its time would mean nothing."""


@dataclass(frozen=True)
class Implementation:
    """A cell to be timed. `compiled` says that its first call compiles: torch.compile or Triton is behind it."""

    name: str
    lltm: Cell
    stage: int | None = None
    target: str | None = None
    build_seconds: float | None = None
    compiled: bool = False


@dataclass(frozen=True)
class InputSet:
    """What one call gets: the five arguments, those of them that need gradients, and the upstream gradients."""

    case: Case
    arguments: list[torch.Tensor]
    leaves: list[torch.Tensor]
    gradients: tuple[torch.Tensor | None, ...]

    @cached_property
    def expected(self) -> dict[str, torch.Tensor]:
        """What the reference says: computed once, for all implementations."""
        return expected(self.case)


def make_input_sets(case: Case, count: int = 3) -> list[InputSet]:
    """A few sets of inputs of one size, all implementations' alike."""
    sets = []
    for k in range(count):
        other = replace(case, seed=case.seed + 10 * k)
        arguments = list(other.inputs().values())
        leaves = [tensor for tensor in arguments if tensor.requires_grad]
        sets.append(InputSet(other, arguments, leaves, other.gradients()))
    return sets


class Run:
    """One pass of an implementation: a call takes the next set of inputs and keeps what came out."""

    def __init__(self, implementation: Implementation, sets: Sequence[InputSet], backward: bool) -> None:
        self.implementation, self.sets, self.backward = implementation, sets, backward
        self.turn = 0
        self.result: tuple[torch.Tensor, ...] = ()

    def __call__(self) -> None:
        """The region that is timed. It also frees what the call before has left."""
        self.turn = (self.turn + 1) % len(self.sets)
        given = self.sets[self.turn]
        outputs = self.implementation.lltm(*given.arguments)
        if self.backward:
            outputs = (*outputs, *torch.autograd.grad(outputs, given.leaves, given.gradients))
        self.result = outputs

    def check(self, when: str) -> None:
        """Raises `WrongResult` unless what the last call returned agrees with the reference."""
        given = self.sets[self.turn]
        names = ["new_h", "new_cell"]
        if self.backward:
            names += [f"d_{name}" for name in INPUTS if name in given.case.requires_grad]
        got = {name: tensor.detach() for name, tensor in zip(names, self.result, strict=True)}
        problem = difference(given.case, got, wanted={name: given.expected[name] for name in names})
        if problem:
            raise WrongResult(f"{self.implementation.name} is not timed: {when}, {problem}")

    def saved_bytes(self) -> dict[str, int]:
        """The bytes that a forward pass keeps for its backward, each storage counted once.

        `saved_bytes` would be freed without a backward pass; inputs and outputs, which the caller holds anyway,
        are counted apart.
        """
        arguments = self.sets[0].arguments
        outputs, kept = saved_storages(lambda: self.implementation.lltm(*arguments))
        of_inputs, of_outputs = ({t.untyped_storage().data_ptr() for t in given} for given in (arguments, outputs))
        count = {"saved_bytes": 0, "saved_input_bytes": 0, "saved_output_bytes": 0}
        for address, storage in kept.items():
            kind = "input_" if address in of_inputs else "output_" if address in of_outputs else ""
            count[f"saved_{kind}bytes"] += storage.nbytes()
        return count


def compile_and_check(implementation: Implementation, sets: Sequence[InputSet]) -> dict[str, int]:
    """Compiles what compiles at the first call, checks both passes on every set, and counts the bytes saved."""
    for backward_too in (True, False):
        run = Run(implementation, sets, backward_too)
        warm_up([run])
        for _ in sets:
            # Memory that starts as NaN reveals unwritten outputs; compiled code would be compiled again for it.
            with nullcontext() if implementation.compiled else nan_in_fresh_memory():
                run()
            run.check("before it is timed")
    return run.saved_bytes()


def warm_up(runs: Sequence[Run]) -> None:
    """A few calls of each: compilation, CUDA graphs and the allocator settle in the first ones."""
    for run in runs:
        for _ in range(2 * len(run.sets)):
            run()


def load_triton_module() -> ModuleType | None:
    """Stage 6's kernels written in Triton; None if Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    path = find_stage(6).folder / "lltm_triton.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# How torch.compile may be asked, beside the default: with CUDA graphs; and with a choice among kernels for each
# product, all of them timed first. (Both at once would be two owners of one memory of CUDA graphs: the outputs of one
# are overwritten when the other is called.)
MODES = ("reduce-overhead", "max-autotune-no-cudagraphs")


def baselines(device: str, modes: Sequence[str] | None = MODES) -> list[Implementation]:
    """Eager, which is stage 1's equations without the checks.

    Unless `modes` is None, also torch.compile of them, and on a GPU these modes of it and Triton.
    """
    equations = load_stage(1).equations
    found = [Implementation("eager", equations)]
    if modes is None:
        return found
    found.append(Implementation("torch.compile", torch.compile(equations, dynamic=False), compiled=True))
    if device == "cuda":
        found += [
            Implementation(f"torch.compile {mode}", compile_in_mode(equations, mode), compiled=True) for mode in modes
        ]
        if module := load_triton_module():
            found.append(Implementation("Triton", module.lltm, compiled=True))
    return found


def compile_in_mode(function: Cell, mode: str) -> Cell:
    """A function under torch.compile in one of its modes."""
    compiled = torch.compile(function, dynamic=False, mode=mode)
    if mode != "reduce-overhead":
        return compiled

    def lltm(*arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        torch.compiler.cudagraph_mark_step_begin()  # the outputs of the last call may be overwritten
        return compiled(*arguments)

    return lltm


def stage_implementation(stage: Stage, device: str) -> Implementation:
    """A stage, built for tensors on `device`. Raises `UserError` when it cannot run on them here."""
    target = next((t for t in stage.targets if t != "emulator" and device in devices_of(stage, t)), None)
    if target is None:
        if "emulator" in stage.targets and device == "cpu":
            raise UserError("only the emulator runs it on CPU tensors, and an emulator's times mean nothing")
        raise UserError(f"it has no code for {device.upper()} tensors")
    seconds = build_stage(stage, target).seconds if has_cpp(stage) else None
    return Implementation(
        f"stage {stage.number}", load_stage(stage.number, target).lltm, stage.number, target, seconds
    )
