"""The table of the features of CUDA that the emulator supports or refuses, one program for each.

The programs are those of common/emulator/programs/features. The first two lines say what a program shows, and whether
the emulator supports it:

    // Cooperative groups: tiles of 1 to 32 threads
    // Support: yes

Instead of `yes` there may be `approximate: in what it differs`, or `refused: a part of the error message`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...errors import UserError
from ...paths import ROOT, display_path
from ..markdown import markdown_table

PROGRAMS = ROOT / "common" / "emulator" / "programs" / "features"
HEAD = re.compile(
    r"// (?P<topic>[^:\n]+): (?P<title>.+)\n// Support: (?P<support>yes|approximate|refused)(?:: (?P<detail>.+))?\n"
)


@dataclass(frozen=True)
class Feature:
    """A feature and the program that shows it; `detail` is empty for `yes`."""

    program: Path
    topic: str
    title: str
    support: str
    detail: str


def read_features() -> list[Feature]:
    """All features, sorted by topic and title. Raises `UserError` for a program without a head."""
    features = [_read_feature(path) for path in PROGRAMS.glob("*.cu")]
    return sorted(features, key=lambda one: (one.topic, one.title))


def _read_feature(path: Path) -> Feature:
    head = HEAD.match(path.read_text())
    if head is None or (head["support"] == "yes") == bool(head["detail"]):
        raise UserError(f"{display_path(path)} does not begin with its feature and its support: see {__name__}")
    return Feature(path, head["topic"], head["title"], head["support"], head["detail"] or "")


def features_table(page: Path) -> str:
    """A row for each program of common/emulator/programs/features; each topic stands in its first row only."""
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
