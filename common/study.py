"""The studies, as the rest of the workbook sees them: their commands and their tables.

A study is one folder of common/studies/. Its package declares a `Study`, and the command line and the generated pages
ask the folders: no other module names a study. The declaration names functions as "module:name", so listing the
commands imports neither torch nor any module of a study.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from .command import Command, find_function
from .paths import ROOT

STUDIES = Path(__file__).with_name("studies")
RECORDS = ROOT / "docs" / "results" / "studies"


@dataclass(frozen=True)
class Study:
    """A study. Its name is the name of its folder; its commands have this name, with an ending if there are several.

    `parts`: a study has a record NAME.json, or several, NAME_PART.json. `tables`: by the name of a generated block,
    the function "module:name" in common/ that returns its Markdown.
    """

    name: str
    commands: tuple[Command, ...]
    parts: tuple[str, ...] = ("",)
    tables: Mapping[str, str] = field(default_factory=dict)

    def record(self, part: str = "", output: str | None = None) -> Path:
        """The path of a record: `output`, by default in docs/results/studies/, where it may not exist yet."""
        return Path(output) if output else RECORDS / f"{'_'.join(filter(None, (self.name, part)))}.json"

    def read_record(self, part: str = "") -> dict | None:
        """A record; None if there is none yet."""
        path = self.record(part)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def write_table(self, block: str) -> str:
        """The Markdown of one of its generated blocks."""
        return find_function(self.tables[block])()


def find_studies() -> list[Study]:
    """Every study, in the order of their names."""
    names = sorted(path.parent.name for path in STUDIES.glob("*/__init__.py"))
    return [import_module(f"common.studies.{name}").STUDY for name in names]
