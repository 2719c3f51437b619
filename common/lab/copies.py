"""`make lab`: JupyterLab on copies of the notebooks, which the reader may change."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ..console import say
from ..exercises import workspace
from ..pages.notebooks import NOTEBOOKS, require_packages
from ..paths import ROOT, display_path

# The line of each notebook that searches for the workbook.
SEARCH = 'root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())'


def copies() -> Path:
    """The folder of the reader's copies."""
    return workspace.root() / "notebooks"


def copy_notebooks() -> list[str]:
    """Brings the copies up to date and returns the names of those that stay as the reader left them.

    An unchanged copy is replaced when its source has changed; a copy that the reader has changed is left alone.
    """
    folder = copies()
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / ".copied.json"
    copied = json.loads(record.read_text()) if record.exists() else {}
    kept = []
    for source in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, target = at_home_in(folder, source.read_text()), folder / source.name
        if target.exists() and workspace.digest(target.read_text()) != copied.get(source.name):
            kept.append(source.name)
            continue
        target.write_text(text)
        copied[source.name] = workspace.digest(text)
    record.write_text(json.dumps(copied, indent=1))
    return kept


def at_home_in(folder: Path, text: str) -> str:
    """The text of a notebook that finds the workbook from this folder: by its path, if the folder lies elsewhere."""
    if folder.is_relative_to(ROOT):
        return text
    return text.replace(json.dumps(SEARCH)[1:-1], json.dumps(f"root = Path({str(ROOT)!r})")[1:-1])


def open_lab(name: str = "") -> int:
    """Opens JupyterLab on the copies, or on one of them; this process becomes JupyterLab."""
    require_packages("jupyterlab")
    kept = copy_notebooks()
    say(f"The notebooks are copies in {display_path(copies())}/: change them as you like.")
    if kept:
        say(f"Left as you saved them: {', '.join(kept)}. For a fresh copy, rename yours and run `make lab` again.")
    sys.stdout.flush()
    as_root = ["--allow-root"] if os.geteuid() == 0 else []  # a container often has no other user
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *as_root, str(copies() / name)])
