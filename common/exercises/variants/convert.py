"""Writes known_answers.txt from the folders wrong/, right/ and starter/ that held these answers before.

    python -m common.exercises.variants.convert EXERCISE_FOLDER...

The folders are removed after the file was read back and found to be equal.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ...console import say
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
    files, says = {}, []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        text = path.read_text(encoding="utf-8")
        if path.name == SAYS_FILE:
            says = [line.strip() for line in text.splitlines() if line.strip()]
        else:
            files[str(path.relative_to(folder))] = text + "\n" * (text != "" and not text.endswith("\n"))
    return Known(files, says)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        convert(Path(name))
        say(str(Path(name) / FILE))
