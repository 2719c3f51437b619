"""The files that hold results: the last measurement in out/, and the recorded ones in docs/results/."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from ..errors import UserError
from ..paths import ROOT, display_path
from .rows import describe_drift
from .schema import validate

RECORDED = ROOT / "docs" / "results"
MEASURED = ROOT / "out" / "bench.json"
THIS_MACHINE = "this machine"


def start_record(sources: Mapping[str, str] | str, tools: Mapping[str, str | None] | None = None) -> dict:
    """The header of a recorded file: date, machine, versions, and the hashes of the sources that it depends on.

    `tools` are additional versions.
    """
    from . import machine

    return {
        "date": utc_now(),
        "machine": machine.describe_machine(),
        "versions": machine.collect_versions() | dict(tools or {}),
        "sources": sources,
    }


def utc_now() -> str:
    """The date and time in the format of recorded files."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def save(record: dict, path: Path) -> None:
    """Writes a record as JSON. A reader sees either the old file or the new one, never a part."""
    save_text(json.dumps(record, indent=1) + "\n", path)


def save_text(text: str, path: Path) -> None:
    """Replaces a file atomically. Raises `UserError` if it cannot be written."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text)
        unfinished.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def write_result(result: dict, path: Path) -> None:
    """Writes a measurement. Raises `UserError` if it does not have the format of schema.py."""
    validate(result, path)
    save(result, path)


def read_result(path: Path) -> dict:
    """One result with its "name" (of the file, or "this machine"). Raises `UserError`, with its path, if invalid."""
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"{display_path(path)}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{display_path(path)}: not JSON: {error}") from error
    validate(result, path)
    return result | {"name": THIS_MACHINE if path == MEASURED else path.stem}


def read_recorded() -> list[dict]:
    """The results in docs/results/, sorted by file name.

    Raises `UserError` for a quick measurement, and for one during which eager's times drifted.
    """
    found = [read_result(path) for path in sorted(RECORDED.glob("*.json"))]
    for result in found:
        if result["quick"]:
            raise UserError(f"docs/results/{result['name']}.json is a quick measurement; record one of `make bench`")
        if drift := describe_drift(result):
            raise UserError(f"docs/results/{result['name']}.json is refused: {drift}; measure again")
    return found


def read_measured() -> dict | None:
    """The last measurement on this machine (`make bench` or `make tour`); None when there is none."""
    return read_result(MEASURED) if MEASURED.exists() else None


def read_all() -> list[dict]:
    """The last measurement on this machine if there is one, then the recorded ones."""
    here = read_measured()
    return ([here] if here else []) + read_recorded()


def keep_other_parts(new: dict, path: Path, measured: Sequence[str]) -> dict:
    """The record at `path` with the date of `new`, and the hashes of the sources that are measured now.

    Raises `UserError` if it comes from another machine or other versions: a record describes one machine.
    """
    old = json.loads(path.read_text())
    facts = [(record["machine"]["gpu"], record["machine"]["driver"], record["versions"]) for record in (old, new)]
    if facts[0] != facts[1]:
        raise UserError(f"{display_path(path)} is from another machine or other versions; measure all of it again")
    return old | {"date": new["date"], "sources": old["sources"] | {name: new["sources"][name] for name in measured}}
