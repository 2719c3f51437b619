"""The C++ tests: each project under tests/cpp is configured, built and run by ctest, and each of its cases is a test.

They are kept in build/cpp in a folder for each compiler, Python and torch; what has changed since, CMake finds.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch
from cpp.compare import compare

from common import build
from common.stages import ROOT

CPP = ROOT / "tests" / "cpp"
PROJECTS = [folder.parent for folder in sorted(CPP.rglob("CMakeLists.txt"))]
pytestmark = pytest.mark.needs("cmake", "g++", "googletest")


def name_of(folder: Path) -> str:
    return folder.relative_to(CPP.parent).as_posix().replace("/", "-")


def written(folder: Path) -> list[str]:
    """The cases of a project as its sources name them: Suite.Name."""
    sources = [path for path in sorted(folder.glob("*")) if path.suffix in (".cpp", ".cu")]
    found = (re.findall(r"^(?:TYPED_)?TEST(?:_F)?\((\w+),\s*(\w+)\)", path.read_text(), re.M) for path in sources)
    return [f"{suite}.{name}" for names in found for suite, name in names]


@functools.cache
def built(folder: Path) -> Path:
    """The folder that a project is built in, configured and up to date."""
    parts = (sys.executable, sys.version, torch.__version__, build.compiler())
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    where = ROOT / "build" / "cpp" / f"{name_of(folder)}-{key}"
    run("cmake", "-S", str(folder), "-B", str(where), f"-DPython3_EXECUTABLE={sys.executable}")
    run("cmake", "--build", str(where), "--parallel", "2")
    return where


def run(*command: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@functools.cache
def ctest(folder: Path) -> dict[str, str | None]:
    """What went wrong in each case of a project, None where nothing did; typed cases as `Suite/0.Name`."""
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


@pytest.mark.parametrize(
    ("folder", "case"), [pytest.param(f, c, id=f"{name_of(f)}-{c}") for f in PROJECTS for c in written(f)]
)
def test_case(folder, case):
    outcomes = {name: problem for name, problem in ctest(folder).items() if same(name, case)}
    assert outcomes, f"ctest does not know {case}"
    for name, problem in outcomes.items():
        assert problem is None, f"{name}: {problem}"


@pytest.mark.parametrize("folder", PROJECTS, ids=name_of)
def test_no_case_of_ctest_is_left_out(folder):
    assert [name for name in ctest(folder) if not any(same(name, case) for case in written(folder))] == []


def test_the_header_is_the_same_in_every_stage():
    """But for what it includes: from stage 5 on there is a CPU to build for, where CUDA's headers may be missing."""
    headers = {path.parts[-3]: path.read_text() for path in ROOT.glob("stages/*/csrc/lltm_math.h")}
    with_cpu = {text for name, text in headers.items() if name >= "stage5"}
    without = {text for name, text in headers.items() if name < "stage5"}
    assert len(headers) > 2
    assert len(with_cpu) == len(without) == 1
    functions = {text.partition("#include <cmath>")[2] for text in headers.values()}
    assert len(functions) == 1


@functools.cache
def recordings() -> tuple[dict, dict]:
    """What every feature returns: on the emulator now, and as recorded from the same sources on an H200."""
    where = built(CPP)
    run("cmake", "--build", str(where), "--target", "record", "--parallel", "2")
    return json.loads(run(str(where / "record"))), json.loads((CPP / "h200.json").read_text())


def test_the_emulator_gives_what_a_gpu_gives():
    emulated, recorded = recordings()
    assert compare(emulated, recorded) == []
    assert sum(len(feature["bits"]) for feature in recorded.values()) > 6000


def test_one_wrong_bit_is_seen():
    emulated, recorded = recordings()
    for name, feature in emulated.items():
        step = 1 if feature["kind"] == "integers" else 2 * feature["ulp"] + 1
        wrong = [hex(int(feature["bits"][0], 16) ^ step), *feature["bits"][1:]]
        assert len(compare({**emulated, name: {**feature, "bits": wrong}}, recorded)) == 1, name
