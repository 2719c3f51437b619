"""What an exercise is built for and runs on: a target of its stage."""

from __future__ import annotations

from dataclasses import replace

from .. import build
from .exercise import Exercise


def target_of(exercise: Exercise, gpu: bool = True) -> str:
    """Where kernels run: a GPU, if there is one and it is wanted, else the emulator; `host` for C++ without kernels.

    Programs run on the emulator everywhere, for its report and its counts. Of a stage for both CPU and GPU, `needs`
    says which of them an exercise is about. Raises `UserError` when this machine has no such target.
    """
    stage, has_kernels = exercise.source, "emulator" in exercise.needs
    if "host" in stage.targets and not has_kernels:
        return "host"
    if has_kernels and exercise.kind != "write" and not (exercise.folder / "files" / "setup.py").exists():
        return "emulator"
    targets = tuple(target for target in stage.targets if target != "host" and (gpu or target != "cuda"))
    return build.choose(replace(stage, targets=targets), None)
