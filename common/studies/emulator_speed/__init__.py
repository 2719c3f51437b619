"""How long the emulator takes for the operations of a kernel."""

from __future__ import annotations

from ...command import Command
from ...study import Study

STUDY = Study(
    "emulator_speed",
    commands=(
        Command(
            "emulator-speed",
            "time the operations of a kernel on the emulator",
            "studies.emulator_speed.recorder:record_speed",
            builds=True,
        ),
    ),
    tables={"emulator-speed": "studies.emulator_speed.table:speed_table"},
)
