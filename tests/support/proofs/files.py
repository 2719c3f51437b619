"""The workbook content that a proof depends on, as globs from the root."""

from __future__ import annotations

from common import stages
from common.paths import ROOT


def stage_files(*numbers: int) -> list[str]:
    """The sources of some or all stages, without their exercises."""
    rows = [stage for stage in stages.STAGES if stage.is_here and stage.number in (numbers or [stage.number])]
    folders = [stage.folder.relative_to(ROOT) for stage in rows]
    sources = [f"{folder}/csrc/**/*" for folder in folders if (ROOT / folder / "csrc").exists()]
    return [*(f"{folder}/*.py" for folder in folders), *sources]


def notebook_files(*names: str) -> list[str]:
    """The sources of some notebooks."""
    return [f"notebooks/{name}.py" for name in names]
