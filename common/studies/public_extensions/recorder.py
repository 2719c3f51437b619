"""Fetches, builds and runs the packages, and records the outcomes: see the package's docstring."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ...console import say
from ...emulator import fingerprint
from ...errors import UserError
from ...paths import ROOT, display_path
from ...results import records
from . import STUDY
from .packages import PACKAGES, Package

SECONDS = 1200  # for the build and the trial of an extension
RIGHT = "right"


def record_outcomes(only: str | None = None) -> int:
    """Tries each package whose name contains `only`, and writes the record; 1 if one cannot be fetched."""
    record = records.start_record(fingerprint().hex()) | {"rows": []}
    missing = 0
    for package in PACKAGES:
        if only and only not in package.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                sources = package.download(Path(folder))
            except UserError as error:
                say(f"{package.name}: {error}")
                missing += 1
                continue
            for extension, trial in package.trials():
                row = try_extension(package, sources, extension, trial)
                record["rows"].append(row)
                say(f"{extension}, {trial}: {row['outcome']} {row['reason']}".rstrip())
                if not only:
                    records.save(record, STUDY.record())
    say(f"{display_path(STUDY.record())} written; `make tables` updates the page" if not only else "nothing recorded")
    return int(missing > 0)


def try_extension(package: Package, sources: Path, extension: str, trial: str) -> dict:
    """The row of a trial: its outcome ("right", "does not build", "reported", "wrong") and the reason."""
    command = [sys.executable, "-m", "common.studies.public_extensions.one", sources, extension, trial]
    facts = {"package": package.name, "version": package.version, "extension": extension, "trial": trial}
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return facts | {"outcome": "too slow", "reason": f"no result within {SECONDS} s"}
    try:
        return facts | json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return facts | {"outcome": "crash", "reason": f"status {done.returncode}: {done.stderr.strip()[-200:]}"}
