"""The table of stages, one row for each; no other place lists them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .errors import UserError
from .paths import ROOT


@dataclass(frozen=True)
class Stage:
    """One row of the table. `targets` are in order of preference; the first that this machine can run is used.

    `pointwise_tensors`: how many tensors of B x S numbers the forward and the backward kernel read and write, if the
    pointwise part is one kernel in each pass. `small_kernels`: the kernels for small cells, one for the forward pass
    and one for the products of the backward pass. `dtypes`: the dtypes that are checked.
    """

    number: int
    folder_name: str
    kind: str  # "primer", "cell", "sequence" or "program"
    title: str
    targets: tuple[str, ...]
    pointwise_tensors: tuple[int, int] | None = None
    dtypes: tuple[str, ...] = ("float32", "float64")
    small_kernels: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of the stage's sources."""
        return ROOT / "stages" / self.folder_name

    @property
    def sources(self) -> list[Path]:
        """All of the code that the stage runs, and how it is built; without texts, exercises and its other builds."""
        return code_of(self.folder)

    @property
    def is_here(self) -> bool:
        """Whether the stage has been written yet."""
        return (self.folder / "README.md").exists()

    @property
    def is_timed(self) -> bool:
        """Whether `make bench` measures the stage."""
        return self.kind in ("cell", "sequence")

    @property
    def package(self) -> str:
        """The name under which the stage is imported, here and when installed with pip."""
        return f"lltm_stage{self.number}"


CODE = (".cpp", ".cu", ".cuh", ".h")


def code_of(folder: Path) -> list[Path]:
    """The code in a folder with a stage's layout: Python modules, setup.py or CMakeLists.txt, and csrc/; sorted."""
    csrc = (path for path in (folder / "csrc").rglob("*") if path.suffix in CODE)
    return sorted([*folder.glob("*.py"), *folder.glob("CMakeLists.txt"), *csrc])


HOST = ("host",)
CUDA = ("cuda", "emulator")
BOTH = ("cuda", "host", "emulator")
# Forward: z (3) and old_cell in, gates (3), new_cell and new_h out.
# Backward: gates (3), new_cell, grad_h and grad_cell in, d_z (3) and d_old_cell out.
GATES_KEPT = (9, 10)
# Forward: z (3) and old_cell in, new_cell and new_h out. Backward: z (3) instead of the gates.
GATES_COMPUTED_AGAIN = (6, 10)
POINTWISE_KERNELS = ("forward_kernel", "backward_kernel")
SMALL_KERNELS = ("cell_kernel", "products_kernel")
FLOATING = ("float32", "float64", "float16", "bfloat16")
STAGES = (
    Stage(0, "stage0_extending_python", "primer", "Extending PyTorch from Python", HOST),
    Stage(1, "stage1_python", "cell", "The LLTM in Python", HOST),
    Stage(2, "stage2_aten", "cell", "C++ with ATen", HOST),
    Stage(3, "stage3_cuda_pointers", "cell", "CUDA kernels over raw pointers", CUDA, GATES_KEPT),
    Stage(4, "stage4_cuda_accessors", "cell", "CUDA kernels over packed accessors", CUDA, GATES_KEPT),
    Stage(5, "stage5_custom_op", "cell", "A registered operator", BOTH, GATES_KEPT, FLOATING),
    Stage(6, "stage6_fused", "cell", "The fused cell", BOTH, GATES_COMPUTED_AGAIN, FLOATING, SMALL_KERNELS),
    Stage(7, "stage7_sequence", "sequence", "The whole sequence in one call", BOTH, dtypes=FLOATING),
    Stage(8, "stage8_deploy", "program", "Deployment without Python", HOST),
    Stage(9, "stage9_distributed", "program", "Training on many GPUs", HOST),
)


def find_stage(number: int) -> Stage:
    """The row of a stage, written or not. Raises `UserError` for a number that is not in the table."""
    for stage in STAGES:
        if stage.number == number:
            return stage
    numbers = [stage.number for stage in STAGES]
    raise UserError(f"there is no stage {number}; the stages are {min(numbers)} to {max(numbers)}")


def get_stage(number: int) -> Stage:
    """The row of a stage that has been written. Raises `UserError` for any other."""
    stage = find_stage(number)
    if not stage.is_here:
        here = ", ".join(str(s.number) for s in STAGES if s.is_here)
        raise UserError(f"stage {number} ({stage.title}) does not exist yet; the stages that do: {here}")
    return stage


def cell_stages() -> list[Stage]:
    """The stages that offer `lltm(...)` and have been written, in order."""
    return [stage for stage in STAGES if stage.kind == "cell" and stage.is_here]


def timed_stages() -> list[Stage]:
    """The stages that `make bench` measures and that have been written, in order."""
    return [stage for stage in STAGES if stage.is_timed and stage.is_here]
