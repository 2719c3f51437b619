"""What an exercise is built for and runs on: targets of its stage."""

from __future__ import annotations

from dataclasses import replace

from ...build import targets
from ..exercise import Exercise


def exercise_targets(exercise: Exercise) -> list[str]:
    """What a check runs on, one after the other: `host` for C++ without kernels; for kernels the emulator, which says
    most of what is wrong, and then a GPU, if there is one.

    Programs run on the emulator alone, for its report and its counts. Of a stage for both CPU and GPU, `needs` says
    which of them an exercise is about. Raises `UserError` when this machine has no such target.
    """
    stage, has_kernels = exercise.source, "emulator" in exercise.needs
    if "host" in stage.targets and not has_kernels:
        return ["host"]
    emulator = targets.choose_target(replace(stage, targets=("emulator",)), None)
    is_extension = exercise.kind == "write" or (exercise.folder / "files" / "setup.py").exists()
    has_gpu = has_kernels and is_extension and targets.why_unavailable("cuda") is None
    return [emulator, "cuda"] if has_gpu else [emulator]


def build_folder_name(target: str) -> str:
    """The name of the folder of a build, and so of its operators' namespace; `cuda` alone is torch's own."""
    return f"lltm_{target}"
