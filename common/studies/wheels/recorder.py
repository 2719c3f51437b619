"""`make wheels`: on which Pythons and with which torch a wheel of the cell runs.

This Python builds three wheels: stage 2's, bound by pybind11; stage 5's, in Python's limited API; and its variant
through torch's stable ABI. Each is then installed and checked (smoke_test.py) in environments that contain torch and
nothing else, not even a compiler. The results go to docs/results/studies/wheels.json, and from there to a table.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ... import console, stages
from ...build import nvcc
from ...emulator import describe_compiler, first_errors
from ...errors import UserError
from ...paths import ROOT, build_dir
from ...pip import cause, run_pip, torch_index
from ...results import records, sources
from ...stages import code_of
from ...versions import installed_version
from . import STUDY

STABLE = stages.find_stage(5).folder / "stable_abi"
# Each kind of wheel, the folder that it is built from, and its package.
WHEEL_KINDS = {
    "pybind11": (stages.find_stage(2).folder, "lltm_stage2"),
    "limited API": (stages.find_stage(5).folder, "lltm_stage5"),
    "stable ABI": (STABLE, "lltm_stage5_stable"),
}
OLDEST_STABLE_TORCH = "2.11"  # the variant through the stable ABI is for this torch and any later one
PRINT_VERSIONS = """
import importlib.metadata, json, platform
try:
    torch = importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    torch = None
print(json.dumps({"python": platform.python_version(), "torch": torch}))
"""


def record_wheels(pythons: Sequence[str], torches: Sequence[str] | None) -> int:
    """Tests every wheel in every environment, writes the record and prints its table; always returns 0."""
    from .table import wheels_table

    torches = torches or (OLDEST_STABLE_TORCH, minor_version(installed_version("torch")))
    places = []
    for python, torch in itertools.product(pythons, torches):
        try:
            places.append(make_environment(python, torch))
        except UserError as error:  # there is no torch 2.15 for Python 3.10, for instance
            console.say(f"Left out: torch {torch} for {python}: {error}")
    if not places:
        raise UserError("there is no environment to try a wheel in")
    rows, wheels = [], []
    with tempfile.TemporaryDirectory() as folder:
        for kind, (source, package) in WHEEL_KINDS.items():
            with console.step(f"build: {kind}"):
                wheel = build_wheel(source, Path(folder))
            counts = {of: len(names) for of, names in undefined_in_wheel(wheel).items()}
            wheels.append({"kind": kind, "file": wheel.name, "bytes": wheel.stat().st_size, **counts})
            for python in places:
                versions = read_versions(python)
                with console.step(f"{kind}: Python {versions['python']}, torch {versions['torch']}"):
                    rows.append({"kind": kind, **versions, "checks": try_wheel(python, wheel, package)})
    written = {
        "date": records.utc_now(),
        "built_with": {**read_versions(Path(sys.executable)), "compiler": describe_compiler()},
        "sources": {kind: hash_wheel_sources(kind) for kind in WHEEL_KINDS},
        "wheels": wheels,
        "rows": rows,
    }
    records.save(written, STUDY.record())
    console.say(wheels_table())
    return 0


def build_wheel(folder: Path, into: Path, cuda: bool = False) -> Path:
    """The wheel of a folder with a setup.py. Raises `UserError` when it does not build.

    With `cuda`, it has kernels, too: for the GPUs of this machine or, without a GPU, only to test that they build.
    """
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, folder.name)
        shutil.copytree(folder, source, ignore=shutil.ignore_patterns("exercises", "stable_abi"))
        made = source / "dist"
        command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(made)]
        path = (
            f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # ninja may be only in Python's folder
        )
        variables = {**os.environ, "USE_CUDA": str(int(cuda)), "PATH": path}
        if cuda:
            variables["TORCH_CUDA_ARCH_LIST"] = nvcc.gpu_architectures() or "8.0"
        built = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True)
        if built.returncode != 0:
            raise UserError(f"no wheel of {folder.name}.\n{first_errors(built.stdout + built.stderr)}")
        return Path(shutil.copy(next(made.glob("*.whl")), into))


def make_environment(python: str, torch: str) -> Path:
    """The Python of an environment that contains only this torch; created if it does not exist.

    This downloads about 3 GB, or 0.2 GB if TORCH_INDEX names the index of the CPU build.
    """
    said = subprocess.run([python, "-c", PRINT_VERSIONS], capture_output=True, text=True)
    if said.returncode != 0:
        raise UserError(f"{python} does not run as a Python: {cause(said.stderr)}")
    minor = ".".join(json.loads(said.stdout)["python"].split(".")[:2])
    place = build_dir() / "wheels" / f"torch{torch}-python{minor}"
    inside = place / "bin" / "python"
    if not inside.exists():
        console.say(f"Making {os.path.relpath(place)}")
        subprocess.run([python, "-m", "venv", str(place)], check=True)
    if not read_versions(inside)["torch"]:
        index = ["--index-url", torch_index()] if torch_index() else []
        run_pip([str(inside), "-m", "pip", "install", "--disable-pip-version-check", *index, f"torch=={torch}.*"])
    return inside


def read_versions(python: Path) -> dict[str, str | None]:
    """The versions of a Python and of its torch; None if it has none."""
    return json.loads(subprocess.check_output([str(python), "-c", PRINT_VERSIONS], text=True))


def try_wheel(python: Path, wheel: Path, package: str, device: str = "cpu") -> dict[str, str]:
    """Installs a wheel beside an environment, not into it, and checks it: "passed" or the error, by check."""
    with tempfile.TemporaryDirectory() as place:
        site = Path(place, "site")
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
        installed = subprocess.run([*pip, "--target", str(site), str(wheel)], capture_output=True, text=True)
        if installed.returncode != 0:
            return {"install": cause(installed.stderr)}
        run = subprocess.run(
            [str(python.absolute()), "-m", "common.studies.wheels.smoke_test", package, device],
            cwd=place,
            # Without this process's environment, no compiler and no other package is found.
            env={"PATH": place, "HOME": place, "PYTHONPATH": f"{site}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        checks = {}
        for line in run.stdout.splitlines():
            checks |= json.loads(line)
        if not checks:
            raise UserError(f"the test of {wheel.name} did not start: {cause(run.stderr)}")
        if run.returncode < 0:
            checks[list(checks)[-1]] = f"ended by {signal.Signals(-run.returncode).name}"
        return {name: outcome.replace(f"{site}/", "") for name, outcome in checks.items()}


def undefined_in_wheel(wheel: Path) -> dict[str, list[str]]:
    """The number of functions that a wheel's library imports from torch's C++, torch's C shims, and Python."""
    with tempfile.TemporaryDirectory() as place:
        shutil.unpack_archive(wheel, place, "zip")
        (library,) = Path(place).rglob("_C*.so")
        return undefined_symbols(library)


def undefined_symbols(library: Path) -> dict[str, list[str]]:
    """The same for a library."""
    shown = subprocess.run(["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=True)
    names = [line.split()[-1].partition("@")[0] for line in shown.stdout.splitlines()]
    of = {"C++": r"_Z.*(2at|3c10|5torch)\w+", "C": r"(aoti_)?torch_\w+", "Python": r"_?Py\w+"}
    return {kind: sorted(filter(re.compile(pattern).fullmatch, names)) for kind, pattern in of.items()}


def outcome_cell(checks: dict[str, str], notes: dict[str, int]) -> str:
    """Either "runs" or the number of the note that says what went wrong."""
    wrong = [f"{name}: `{outcome}`" for name, outcome in checks.items() if outcome != "passed"]
    return f"no: {notes.setdefault('; '.join(wrong), len(notes) + 1)}" if wrong else "runs"


def minor_version(version: str) -> str:
    """3.12 for 3.12.1."""
    return ".".join(version.split(".")[:2])


def hash_wheel_sources(kind: str) -> str:
    """A hash of the sources of a kind of wheel."""
    return sources.hash_code(code_of(WHEEL_KINDS[kind][0]))
