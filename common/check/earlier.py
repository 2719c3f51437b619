"""Checks that have passed earlier. The tour does not repeat them while nothing that they depend on has changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import torch

from ..build.library import COMPILER_VARIABLES
from ..emulator import describe_compiler, fingerprint
from ..key import Key
from ..paths import ROOT, build_dir
from ..results import records
from ..stages import STAGES, Stage
from .subject import Result

PACKAGES = ("build", "cell", "check", "deploy", "sequence")  # of common/: what decides the outcome of a check
NOT_CHECKED = ("exercises", "__pycache__")  # folders of a stage


@dataclass(frozen=True)
class Earlier:
    """The results of a stage's checks on a target, and when they ran, as local time."""

    date: str
    results: list[Result]


def find_earlier(stage: Stage, target: str, key: str) -> Earlier | None:
    """The results of the last run that passed, if it was with this key (`key_of`); otherwise None."""
    try:
        kept = json.loads(place_of(stage, target).read_text())
        if kept["key"] != key:
            return None
        return Earlier(kept["date"], [Result(**row) for row in kept["results"]])
    except (OSError, ValueError, KeyError, TypeError):  # none, or of another version of this module
        return None


def keep(stage: Stage, target: str, key: str, results: Sequence[Result]) -> None:
    """Keeps the results for `find_earlier` if none failed. `key` is from before the checks."""
    if any(result.outcome == "failed" for result in results):
        return
    date = datetime.now().strftime("%Y-%m-%d at %H:%M")
    kept = {"key": key, "date": date, "results": [asdict(result) for result in results]}
    records.save(kept, place_of(stage, target))


def place_of(stage: Stage, target: str) -> Path:
    """The file for the results."""
    return build_dir() / "checked" / f"stage{stage.number}-{target}.json"


def key_of(stage: Stage) -> str:
    """A hash of everything that the outcome of a stage's checks depends on. A program may use every stage."""
    gpus = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    parts = [torch.__version__, sys.version, describe_compiler() or "", *gpus]
    common = ROOT / "common"
    folders = [row.folder for row in (STAGES if stage.kind == "program" else [stage])]
    folders += [common / name for name in PACKAGES]
    files = [*common.glob("*.py"), *(path for folder in folders for path in files_of(folder))]
    return Key(*parts, fingerprint()).add_variables(COMPILER_VARIABLES).add_files(files, ROOT).text


def files_of(folder: Path) -> Iterator[Path]:
    """The files of a folder, without those that no check reads."""
    for path in folder.rglob("*"):
        if path.is_file() and not set(path.relative_to(folder).parts) & set(NOT_CHECKED):
            yield path
