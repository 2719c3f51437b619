"""What a GPU computes with each PTX instruction that the emulator has. The emulator's tests read the record."""

from __future__ import annotations

from ...command import Command
from ...study import Study

STUDY = Study(
    "ptx",
    commands=(
        Command(
            "ptx",
            "record what a GPU computes with each PTX instruction, for the emulator's tests",
            "studies.ptx.recorder:record_results",
        ),
    ),
    parts=(),
)
