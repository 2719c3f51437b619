"""Shortens the output of compilers and linkers to the lines that readers need."""

from __future__ import annotations

import re
import shutil
import subprocess


def first_errors(log: str) -> str:
    """The errors in a compiler's output: at most ten lines, each with the line of the source below it.

    If there is no error, the last lines of the output.
    """
    says = re.compile(r"\b(error|Error|fatal|undefined|Killed|No space)\b")
    noise = ("ninja: ", "subprocess.CalledProcessError", "RuntimeError: Error", "Error building extension", "FAILED:")
    rows, found = log.splitlines(), []
    for k, row in enumerate(rows):
        if says.search(row) and not row.startswith(noise) and len(found) < 10:
            found.append(row)
            found += [below for below in rows[k + 1 : k + 3] if re.match(r"\s*\d* \| ", below)]
    return "\n".join(f"  {row}" for row in found or log.strip().splitlines()[-10:])


def demangle(message: str) -> str:
    """A message with demangled names of C++ functions."""
    if not shutil.which("c++filt"):
        return message
    return subprocess.run(["c++filt"], input=message, capture_output=True, text=True).stdout.strip()


def drop_misplaced_carets(output: str) -> str:
    """A compiler's output without the marks below a line that are beyond its end.

    They have the columns of the rewritten text, while the line is the original.
    """
    kept, width = [], 0
    for row in output.splitlines(keepends=True):
        if source := re.match(r" *\d+ \| (.*)", row):
            width = len(source[1])
        marks = re.match(r" +\| ( *)", row)
        if not marks or len(marks[1]) <= width:
            kept.append(row)
    return "".join(kept)
