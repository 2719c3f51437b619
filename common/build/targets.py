"""The targets of a stage: which of them this machine can run, and the devices of their tensors."""

from __future__ import annotations

from .. import emulator, stages
from ..errors import UserError
from ..stages import Stage
from . import nvcc


def why_unavailable(target: str) -> str | None:
    """Why this machine cannot run a target, with the fix; None if it can."""
    if target == "host":
        return None if emulator.describe_compiler() else "no C++ compiler; `make doctor` says what to install"
    if target == "cuda":
        import torch

        if not torch.cuda.is_available():
            return "no GPU that torch can use; `make doctor` says why"
    if target in ("cuda", "compile-only"):
        return None if nvcc.find_nvcc() else "no nvcc; `make doctor` says what to install"
    if target == "emulator":
        reason = emulator.why_unavailable()
        return f"{reason}; `make doctor` says what to install" if reason else None
    raise UserError(f"there is no target {target!r}; the targets are cuda, host, emulator and compile-only")


def choose_target(stage: Stage, target: str | None) -> str:
    """The requested target, or the first of the stage's targets that this machine can run.

    Raises `UserError` if the stage has no such target, or if none can run here, with the reasons.
    """
    if target not in (None, *stage.targets):
        raise UserError(f"stage {stage.number} has no target {target!r}; it has {', '.join(stage.targets)}")
    if target:
        return target
    if not has_cpp(stage):
        return stage.targets[0]
    reasons = {target: why_unavailable(target) for target in stage.targets}
    for target, reason in reasons.items():
        if reason is None:
            return target
    listed = "; ".join(f"{target}: {reason}" for target, reason in reasons.items())
    raise UserError(f"stage {stage.number} cannot run on this machine. {listed}")


def choose_targets(stage: Stage, target: str | None) -> list[str]:
    """The targets to check here, the best first: the requested target, or one for each kind of code in the stage.

    CUDA code is checked on a GPU or else on the emulator, CPU code on the host. Raises as `choose_target` does.
    """
    best = choose_target(stage, target)
    if target or not has_cpp(stage):
        return [best]
    others = ["host"] if best == "cuda" else ["emulator"] if best == "host" else []
    return [best, *(other for other in others if other in stage.targets and why_unavailable(other) is None)]


def devices_of(stage: Stage, target: str) -> list[str]:
    """The devices of a stage's tensors on a target. ATen code (stages 1 and 2) runs on both kinds of device."""
    import torch

    if target == "cuda":
        return ["cuda"]
    if target == "host" and stage.targets == stages.HOST and torch.cuda.is_available():
        return ["cpu", "cuda"]
    return ["cpu"]


def has_cpp(stage: Stage) -> bool:
    """Whether there is anything to build."""
    return (stage.folder / "setup.py").exists()
