"""The implementations that are timed: eager, torch.compile and the stages. Each pass is checked before and after.

`Implementation`, `InputSet` and `Run` are for any function that a `Call` describes; the rest is for the cell.
"""

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
from ..cell.call import Call, Function, difference, nan_in_fresh_memory
from ..cell.case import Cell
from ..cell.memory import saved_storages
from ..errors import UserError
from ..paths import ROOT
from ..results.rows import CUDA_GRAPH
from ..stages import Stage, find_stage
from .cuda_graphs import CapturedFunction

# Compiled code is cached for the next run, and no worker process of the compiler runs during a measurement.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(ROOT / "build" / "inductor"))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
# Otherwise it prints every kernel that it tries for a product, and an error for each that cannot run.
os.environ.setdefault("TORCHINDUCTOR_AUTOTUNE_NUM_CHOICES_DISPLAYED", "0")
os.environ.setdefault("TORCHINDUCTOR_MAX_AUTOTUNE_REPORT_CHOICES_STATS", "0")
logging.getLogger("torch._inductor.select_algorithm").setLevel(logging.CRITICAL)


class WrongResult(UserError):
    """An implementation disagrees with the float64 reference, so its time would be meaningless."""


@dataclass(frozen=True)
class Implementation:
    """A function to be timed.

    `compiled` means that its first call compiles it or captures a CUDA graph.
    `captured` is the function whose calls a CUDA graph replays.
    `may_fail` means that it is listed as not run if its results are wrong or its call fails.
    """

    name: str
    function: Function
    stage: int | None = None
    target: str | None = None
    build_seconds: float | None = None
    compiled: bool = False
    captured: Function | None = None
    may_fail: bool = False


@dataclass(frozen=True)
class InputSet:
    """The inputs of one call: its arguments, those that need gradients, and the upstream gradients.

    `tf32` means that products of float32 may be rounded to TF32.
    """

    case: Call
    arguments: list[torch.Tensor]
    leaves: list[torch.Tensor]
    gradients: tuple[torch.Tensor | None, ...]
    tf32: bool = False

    @cached_property
    def reference(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The results of the reference and their spread, computed once for all implementations."""
        return self.case.reference()

    def difference(self, got: dict[str, torch.Tensor]) -> str | None:
        """What differs from the reference, among the results that are there; None if nothing does."""
        wanted, spread = self.reference
        return difference(self.case, got, self.tf32, {name: wanted[name] for name in got}, spread)


def make_input_sets(case: Call, count: int = 3, tf32: bool = False) -> list[InputSet]:
    """A few sets of inputs of one size, the same for all implementations."""
    sets = []
    for k in range(count):
        other = replace(case, seed=case.seed + 10 * k)
        arguments = list(other.inputs().values())
        leaves = [tensor for tensor in arguments if tensor.requires_grad]
        sets.append(InputSet(other, arguments, leaves, other.gradients(), tf32))
    return sets


class Run:
    """One pass of an implementation: each call uses the next set of inputs and keeps the result."""

    def __init__(self, implementation: Implementation, sets: Sequence[InputSet], backward: bool) -> None:
        self.implementation, self.sets, self.backward = implementation, sets, backward
        self.turn = 0
        self.result: tuple[torch.Tensor, ...] = ()

    def __call__(self) -> None:
        """The timed region. It also frees the result of the previous call."""
        self.turn = (self.turn + 1) % len(self.sets)
        given = self.sets[self.turn]
        outputs = self.implementation.function(*given.arguments)
        if self.backward:
            outputs = (*outputs, *torch.autograd.grad(outputs, given.leaves, given.gradients))
        self.result = outputs

    def check(self, when: str) -> None:
        """Raises `WrongResult` unless what the last call returned agrees with the reference."""
        given = self.sets[self.turn]
        names = list(given.case.results)
        if self.backward:
            names += [f"d_{name}" for name in given.case.differentiable if name in given.case.requires_grad]
        got = {name: tensor.detach() for name, tensor in zip(names, self.result, strict=True)}
        if problem := given.difference(got):
            raise WrongResult(f"{self.implementation.name} is not timed: {when}, {problem}")

    def saved_bytes(self) -> dict[str, int]:
        """The bytes that a forward pass keeps for its backward, each storage counted once.

        `saved_bytes` could be freed if there were no backward pass. Inputs and outputs, which the caller holds
        anyway, are counted separately. For a CUDA graph, which has its own memory, the captured cell is counted.
        """
        arguments = self.sets[0].arguments
        function = self.implementation.captured or self.implementation.function
        outputs, kept = saved_storages(lambda: function(*arguments))
        of_inputs, of_outputs = ({t.untyped_storage().data_ptr() for t in given} for given in (arguments, outputs))
        count = {"saved_bytes": 0, "saved_input_bytes": 0, "saved_output_bytes": 0}
        for address, storage in kept.items():
            kind = "input_" if address in of_inputs else "output_" if address in of_outputs else ""
            count[f"saved_{kind}bytes"] += storage.nbytes()
        return count


def compile_and_check(implementation: Implementation, sets: Sequence[InputSet]) -> dict[str, int]:
    """Triggers compilation by a first call, checks both passes on every set, and counts the saved bytes."""
    for backward_too in (True, False):
        run = Run(implementation, sets, backward_too)
        warm_up([run])
        for _ in sets:
            # New memory filled with NaN reveals unwritten outputs, but it would recompile compiled code.
            with nullcontext() if implementation.compiled else nan_in_fresh_memory():
                run()
            run.check("before it is timed")
    return run.saved_bytes()


def warm_up(runs: Sequence[Run]) -> None:
    """Makes a few calls of each run, after which compilation, CUDA graphs and the allocator have settled."""
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


# The modes of torch.compile besides the default: with CUDA graphs, and with autotuning, which times several kernels
# for each product and chooses one. (Both at once would mean two owners of the memory of CUDA graphs: a call of one
# would overwrite the outputs of the other.)
MODES = ("reduce-overhead", "max-autotune-no-cudagraphs")


def baselines(device: str, modes: Sequence[str] | None = MODES) -> list[Implementation]:
    """Eager, that is, stage 1's equations without the checks.

    Unless `modes` is None, also torch.compile of these equations, and on a GPU its other `modes` and Triton.
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


def under_cuda_graph(implementation: Implementation) -> Implementation:
    """An implementation of the cell whose launches are replayed by CUDA graphs. It is no row of its stage."""
    function = implementation.function
    captured = CapturedFunction(function, parameters=(1, 2))  # weights and bias
    return Implementation(CUDA_GRAPH + implementation.name, captured, compiled=True, captured=function)


def stage_implementation(stage: Stage, device: str) -> Implementation:
    """A stage, built for tensors on `device`. Raises `UserError` if it cannot run on them on this machine."""
    target = next((t for t in stage.targets if t != "emulator" and device in devices_of(stage, t)), None)
    if target is None:
        if "emulator" in stage.targets and device == "cpu":
            raise UserError(
                "only the emulator runs it on CPU tensors, and times on an emulator say nothing about a GPU"
            )
        raise UserError(f"it has no code for {device.upper()} tensors")
    seconds = build_stage(stage, target).seconds if has_cpp(stage) else None
    return Implementation(
        f"stage {stage.number}", load_stage(stage.number, target).lltm, stage.number, target, seconds
    )
