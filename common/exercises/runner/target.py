"""Chooses the targets of its stage on which an exercise is built and checked."""

from __future__ import annotations

from dataclasses import replace

from ...build import targets
from ..exercise import Exercise


def exercise_targets(exercise: Exercise) -> list[str]:
    """The targets of a check, in order: `host` for C++ without kernels; for kernels the emulator, whose messages say
    most about a mistake, and then a GPU, if there is one.

    Programs run only on the emulator, for its report and its counts. If a stage has code for both CPU and GPU,
    `needs` says which of them an exercise is about. Raises `UserError` if this machine has no such target.
    """
    stage, has_kernels = exercise.source, "emulator" in exercise.needs
    if "host" in stage.targets and not has_kernels:
        return ["host"]
    emulator = targets.choose_target(replace(stage, targets=("emulator",)), None)
    is_extension = exercise.kind == "write" or (exercise.folder / "files" / "setup.py").exists()
    has_gpu = has_kernels and is_extension and targets.why_unavailable("cuda") is None
    return [emulator, "cuda"] if has_gpu else [emulator]


def build_folder_name(target: str) -> str:
    """The name of a build's folder and of its operators' namespace; `cuda` alone is a namespace of torch."""
    return f"lltm_{target}"
