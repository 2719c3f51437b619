"""Writes known_answers.txt from the folders wrong/, right/ and starter/ that held these answers before.

    python -m common.exercises.variants.convert EXERCISE_FOLDER...

The folders are removed after the file was read back and found to be equal.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ...console import say
from . import read_files
from .known import FILE, Known, format_known, read_known

SAYS_FILE = "says.txt"


def convert(folder: Path) -> None:
    """Converts one exercise. Raises `ValueError` if an answer cannot be expressed in one file."""
    answers = {}
    if (folder / "starter").is_dir():
        answers["starter"] = read_folder(folder / "starter")
    for kind in ("wrong", "right"):
        for path in sorted(path for path in (folder / kind).glob("*") if path.is_dir()):
            answers[f"{kind}/{path.name}"] = read_folder(path)
    text = format_known(answers)
    if read_known(text) != answers:
        raise ValueError(f"{folder}: a file contains a line that begins with == or ===")
    (folder / FILE).write_text(text, encoding="utf-8")
    for kind in ("starter", "wrong", "right"):
        shutil.rmtree(folder / kind, ignore_errors=True)


def read_folder(folder: Path) -> Known:
    """The answer in a folder of the old form."""
    files = read_files(folder)
    says = [line.strip() for line in files.pop(SAYS_FILE, "").splitlines() if line.strip()]
    return Known({path: text + "\n" * bool(text and not text.endswith("\n")) for path, text in files.items()}, says)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        convert(Path(name))
        say(str(Path(name) / FILE))
