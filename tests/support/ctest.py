"""C++ tests: CMake configures and builds a project, ctest runs it, and each of its cases becomes a test.

They are kept in build/cpp in a folder for each compiler, Python and torch; what has changed since, CMake finds.
"""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import torch

from common.emulator import describe_compiler
from common.paths import ROOT


def written(folder: Path) -> list[str]:
    """The cases of a project by their names in its sources: Suite.Name."""
    sources = [path for path in sorted(folder.glob("*")) if path.suffix in (".cpp", ".cu")]
    found = (re.findall(r"^(?:TYPED_)?TEST(?:_F)?\((\w+),\s*(\w+)\)", path.read_text(), re.M) for path in sources)
    return [f"{suite}.{name}" for names in found for suite, name in names]


@functools.cache
def built(folder: Path) -> Path:
    """The build folder of a project, configured and up to date."""
    parts = (sys.executable, sys.version, torch.__version__, describe_compiler())
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    where = ROOT / "build" / "cpp" / f"{folder.parent.name}-{key}"
    run("cmake", "-S", str(folder), "-B", str(where), f"-DPython3_EXECUTABLE={sys.executable}")
    run("cmake", "--build", str(where), "--parallel", "2")
    return where


def run(*command: str) -> str:
    """Runs a command, which must succeed, and returns what it prints."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@functools.cache
def ctest(folder: Path) -> dict[str, str | None]:
    """What went wrong in each case of a project, or None if it passed. Typed cases are named `Suite/0.Name`."""
    where = built(folder)
    report = where / "junit.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(where), "--output-junit", str(report), "--timeout", "120"]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = re.sub(r"\s*#.*|<.*>", "", case.attrib["name"]).strip()
        outcomes[name] = None if case.attrib["status"] == "run" else case.findtext("system-out", "no output")
    return outcomes


def same(ctests: str, source: str) -> bool:
    """Whether ctest's name is an instance of a case in the source."""
    return re.sub(r"/\w+", "", ctests) == source


def assert_passed(folder: Path, case: str) -> None:
    """Asserts that all instances of a case passed."""
    outcomes = {name: problem for name, problem in ctest(folder).items() if same(name, case)}
    assert outcomes, f"ctest does not know {case}"
    for name, problem in outcomes.items():
        assert problem is None, f"{name}: {problem}"


def left_out(folder: Path) -> list[str]:
    """The cases of a project that ctest runs but `written` does not list."""
    return [name for name in ctest(folder) if not any(same(name, case) for case in written(folder))]
