"""Who is timed: eager, torch.compile and the stages; and one pass of each, checked before and after."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType

import torch

from .build import build, devices, has_cpp, load
from .case import INPUTS, Case, Cell, difference, expected, nan_in_fresh_memory
from .errors import UserError
from .memory import saved_storages
from .stages import ROOT, Stage, find

# Compiled code is kept for the next run, and no compiler's worker waits beside a measurement.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(ROOT / "build" / "inductor"))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


class WrongResult(UserError):
    """A contender disagrees with the float64 reference, so that its time would mean nothing."""


@dataclass(frozen=True)
class Contender:
    """A cell to be timed. `compiled` says that its first call compiles: torch.compile or Triton is behind it."""

    name: str
    lltm: Cell
    stage: int | None = None
    target: str | None = None
    build_seconds: float | None = None
    compiled: bool = False


@dataclass(frozen=True)
class InputSet:
    """What one call gets: the five arguments, those of them that need gradients, and the gradients from above."""

    case: Case
    arguments: list[torch.Tensor]
    leaves: list[torch.Tensor]
    gradients: tuple[torch.Tensor | None, ...]

    @cached_property
    def expected(self) -> dict[str, torch.Tensor]:
        """The reference's results, which every contender is compared with."""
        return expected(self.case)


def input_sets(case: Case, count: int = 3) -> list[InputSet]:
    """A few sets of inputs of one size, all contenders' alike."""
    sets = []
    for k in range(count):
        other = replace(case, seed=case.seed + 10 * k)
        arguments = list(other.inputs().values())
        leaves = [tensor for tensor in arguments if tensor.requires_grad]
        sets.append(InputSet(other, arguments, leaves, other.gradients()))
    return sets


class Run:
    """One pass of a contender: a call takes the next set of inputs and keeps what came out."""

    def __init__(self, contender: Contender, sets: Sequence[InputSet], backward: bool) -> None:
        self.contender, self.sets, self.backward = contender, sets, backward
        self.turn = 0
        self.result: tuple[torch.Tensor, ...] = ()

    def __call__(self) -> None:
        """The region that is timed. It also frees what the call before has left."""
        self.turn = (self.turn + 1) % len(self.sets)
        given = self.sets[self.turn]
        outputs = self.contender.lltm(*given.arguments)
        if self.backward:
            outputs = (*outputs, *torch.autograd.grad(outputs, given.leaves, given.gradients))
        self.result = outputs

    def check(self, when: str) -> None:
        """Raises `WrongResult` unless what the last call returned agrees with the reference."""
        given = self.sets[self.turn]
        case = given.case if self.backward else replace(given.case, requires_grad=())
        names = ["new_h", "new_cell", *(f"d_{name}" for name in INPUTS if name in case.requires_grad)]
        got = {name: tensor.detach() for name, tensor in zip(names, self.result, strict=True)}
        problem = difference(case, got, wanted={name: given.expected[name] for name in names})
        if problem:
            raise WrongResult(f"{self.contender.name} is not timed: {when}, {problem}")

    def saved_bytes(self) -> dict[str, int]:
        """The bytes that a forward pass keeps for its backward, each storage counted once.

        `saved_bytes` would be freed without a backward pass; inputs and outputs, which the caller holds anyway,
        are counted apart.
        """
        arguments = self.sets[0].arguments
        outputs, kept = saved_storages(lambda: self.contender.lltm(*arguments))
        of_inputs, of_outputs = ({t.untyped_storage().data_ptr() for t in given} for given in (arguments, outputs))
        count = {"saved_bytes": 0, "saved_input_bytes": 0, "saved_output_bytes": 0}
        for address, storage in kept.items():
            kind = "input_" if address in of_inputs else "output_" if address in of_outputs else ""
            count[f"saved_{kind}bytes"] += storage.nbytes()
        return count


def prepare(contender: Contender, sets: Sequence[InputSet]) -> dict[str, int]:
    """Compiles what compiles at the first call, checks both passes on every set, and counts the bytes saved."""
    for backward_too in (True, False):
        run = Run(contender, sets, backward_too)
        warm_up([run])
        for _ in sets:
            # Memory that starts as NaN shows an output that nobody wrote; compiled code would compile anew for it.
            with nullcontext() if contender.compiled else nan_in_fresh_memory():
                run()
            run.check("before it is timed")
    return run.saved_bytes()


def warm_up(runs: Sequence[Run]) -> None:
    """A few calls of each: compilation, CUDA graphs and the allocator settle in the first ones."""
    for run in runs:
        for _ in range(2 * len(run.sets)):
            run()


def triton_module() -> ModuleType | None:
    """Stage 6's kernels written in Triton; None where there is no Triton."""
    if importlib.util.find_spec("triton") is None:
        return None
    path = find(6).folder / "lltm_triton.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def peers(device: str, compiled: bool = True) -> list[Contender]:
    """Eager, which is stage 1's equations without the checks, and, if wanted, torch.compile of them and Triton."""
    equations = load(1).equations
    found = [Contender("eager", equations)]
    if compiled:
        found.append(Contender("torch.compile", torch.compile(equations, dynamic=False), compiled=True))
    if compiled and device == "cuda":
        replayed = torch.compile(equations, dynamic=False, mode="reduce-overhead")

        def lltm(*arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            torch.compiler.cudagraph_mark_step_begin()  # the outputs of the last call may be overwritten
            return replayed(*arguments)

        found.append(Contender("torch.compile reduce-overhead", lltm, compiled=True))
        if module := triton_module():
            found.append(Contender("Triton", module.lltm, compiled=True))
    return found


def contender_of(stage: Stage, device: str) -> Contender:
    """A stage, built for tensors on `device`. Raises `UserError` when it cannot run on them here."""
    target = next((t for t in stage.targets if t != "emulator" and device in devices(stage, t)), None)
    if target is None:
        if "emulator" in stage.targets and device == "cpu":
            raise UserError("only the emulator runs it on CPU tensors, and an emulator's times mean nothing")
        raise UserError(f"it has no code for {device.upper()} tensors")
    seconds = build(stage, target).seconds if has_cpp(stage) else None
    return Contender(f"stage {stage.number}", load(stage.number, target).lltm, stage.number, target, seconds)
