"""Which tool finds which mistake: the emulator, compute-sanitizer, or the program itself."""

from __future__ import annotations

from ...command import Command
from ...study import Study

STUDY = Study(
    "compare_tools",
    commands=(
        Command(
            "compare-tools",
            "record which tool finds which mistake, on a GPU",
            "studies.compare_tools.recorder:record_tool_comparison",
            builds=True,
        ),
    ),
    tables={"checks": "studies.compare_tools.table:tool_comparison_table"},
)
