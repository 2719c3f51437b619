"""Where the notebooks' builds are kept."""

from __future__ import annotations

from pathlib import Path

from ..paths import build_dir


def notebook_builds() -> Path:
    """The folder for what notebooks build with this version of torch."""
    import torch

    folder = build_dir() / "notebooks" / f"torch-{torch.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
