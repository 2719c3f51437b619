"""The features of CUDA that the emulator supports, as a table in docs/emulator.md."""

from __future__ import annotations

import os
from pathlib import Path

from ...studies.programs.features import Feature, read_features
from ..markdown import markdown_table


def features_table(page: Path) -> str:
    """A row for each program of common/emulator/features; each topic stands in its first row only."""
    rows: list[list[str]] = []
    topic = ""
    for feature in read_features():
        name = os.path.relpath(feature.program, page.parent)
        title = feature.title.replace("_", r"\_")
        rows.append(["" if feature.topic == topic else feature.topic, f"[{title}]({name})", support(feature)])
        topic = feature.topic
    return markdown_table(["topic", "feature", "support"], rows, left=3)


def support(feature: Feature) -> str:
    """What the table says about the support of a feature."""
    if feature.support == "refused":
        return f"refused: `{feature.detail}`"
    return f"{feature.support}: {feature.detail}" if feature.detail else feature.support
