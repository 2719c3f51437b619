"""Reads an exercise's equivalent.txt: mutants that are also right answers, each with the reason.

    # lltm.cu: a block of 257 threads computes the same
    -  const int threads = 256;
    +  const int threads = 257;

A reason may continue on further lines that begin with `#`. A line `---` separates several diffs with one reason.
"""

from __future__ import annotations

import re

from ...errors import UserError
from ...exercises.exercise import EQUIVALENT_FILE, Exercise

ENTRY = re.compile(r"(?P<head>(?:^#.*\n)+)(?P<diffs>(?:^(?!#).*\n)*)", re.MULTILINE)
HEAD = re.compile(r"(?P<file>\S+): (?P<reason>.+)")


def read_equivalents(exercise: Exercise) -> dict[tuple[str, str], str]:
    """The reason for each mutant, by file and diff. Raises `UserError` for a file in another format."""
    path = exercise.folder / EQUIVALENT_FILE
    if not path.is_file():
        return {}
    text = path.read_text(encoding="utf-8")
    entries = list(ENTRY.finditer(text))
    if "".join(entry[0] for entry in entries) != text:
        raise UserError(f"exercise {exercise.id}: {EQUIVALENT_FILE} does not begin with `# FILE: REASON`")
    found = {}
    for entry in entries:
        said = " ".join(line.lstrip("# ") for line in entry["head"].splitlines())
        head = HEAD.fullmatch(said)
        if not head:
            raise UserError(f"exercise {exercise.id}: {EQUIVALENT_FILE}: {said!r} is not `# FILE: REASON`")
        for diff in re.split(r"^---\n", entry["diffs"], flags=re.MULTILINE):
            found[head["file"], diff.strip("\n") + "\n"] = head["reason"]
    return found
