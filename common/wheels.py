"""`make wheels`: on which Pythons and with which torch a wheel of the cell runs.

This Python builds three wheels: stage 2's, bound by pybind11; stage 5's, in Python's limited API; and its variant
through torch's stable ABI. Each is then installed and checked (trial.py) in environments that hold torch and nothing
else, where no compiler is to be found. What came of it goes to docs/results/wheels.json, and from there to a table.
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
from datetime import datetime, timezone
from pathlib import Path

from . import architectures, build, console, results, stages
from .cache import BUILD
from .environment import cause, installed_version, run_pip, torch_index
from .errors import UserError
from .stages import ROOT

STABLE = stages.find(5).folder / "stable_abi"
# Each kind of wheel, the folder that it is built from, and its package.
KINDS = {
    "pybind11": (stages.find(2).folder, "lltm_stage2"),
    "limited API": (stages.find(5).folder, "lltm_stage5"),
    "stable ABI": (STABLE, "lltm_stage5_stable"),
}
OLDEST = "2.11"  # the variant through the stable ABI is for this torch and any later one
VERSIONS = """
import importlib.metadata, json, platform
try:
    torch = importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    torch = None
print(json.dumps({"python": platform.python_version(), "torch": torch}))
"""


def record(pythons: Sequence[str], torches: Sequence[str] | None) -> int:
    """Tries every wheel in every environment and writes docs/results/wheels.json; returns 0, whatever came of it."""
    torches = torches or (OLDEST, minor(installed_version("torch")))
    places = []
    for python, torch in itertools.product(pythons, torches):
        try:
            places.append(environment(python, torch))
        except UserError as error:  # there is no torch 2.15 for Python 3.10, for instance
            console.say(f"Left out: torch {torch} for {python}: {error}")
    if not places:
        raise UserError("there is no environment to try a wheel in")
    rows, wheels = [], []
    with tempfile.TemporaryDirectory() as folder:
        for kind, (source, package) in KINDS.items():
            with console.step(f"build: {kind}"):
                wheel = build_wheel(source, Path(folder))
            counts = {of: len(names) for of, names in needs(wheel).items()}
            wheels.append({"kind": kind, "file": wheel.name, "bytes": wheel.stat().st_size, **counts})
            for python in places:
                versions = versions_of(python)
                with console.step(f"{kind}: Python {versions['python']}, torch {versions['torch']}"):
                    rows.append({"kind": kind, **versions, "checks": trial(python, wheel, package)})
    written = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "built_with": {**versions_of(Path(sys.executable)), "compiler": build.compiler()},
        "sources": {kind: source_hash(kind) for kind in KINDS},
        "wheels": wheels,
        "rows": rows,
    }
    results.INSTALLED.write_text(json.dumps(written, indent=1) + "\n")
    console.say(markdown())
    return 0


def build_wheel(folder: Path, into: Path, cuda: bool = False) -> Path:
    """The wheel of a folder with a setup.py. Raises `UserError` when it does not build.

    With `cuda` it has kernels too: for the GPUs that are here, or to see that they build for one that is not.
    """
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, folder.name)
        shutil.copytree(folder, source, ignore=shutil.ignore_patterns("exercises", "stable_abi"))
        made = source / "dist"
        command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(made)]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # ninja may be beside Python only
        variables = {**os.environ, "USE_CUDA": str(int(cuda)), "PATH": path}
        if cuda:
            variables["TORCH_CUDA_ARCH_LIST"] = architectures.of_gpus() or "8.0"
        built = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True)
        if built.returncode != 0:
            raise UserError(f"no wheel of {folder.name}.\n{build.first_errors(built.stdout + built.stderr)}")
        return Path(shutil.copy(next(made.glob("*.whl")), into))


def environment(python: str, torch: str) -> Path:
    """The Python of an environment that holds this torch and nothing else; made if it is not there.

    A download of some 3 GB, or 0.2 with TORCH_INDEX naming the index of the CPU build.
    """
    said = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True)
    if said.returncode != 0:
        raise UserError(f"{python} is no Python that runs: {cause(said.stderr)}")
    minor = ".".join(json.loads(said.stdout)["python"].split(".")[:2])
    place = BUILD / "wheels" / f"torch{torch}-python{minor}"
    inside = place / "bin" / "python"
    if not inside.exists():
        console.say(f"Making {os.path.relpath(place)}")
        subprocess.run([python, "-m", "venv", str(place)], check=True)
    if not versions_of(inside)["torch"]:
        index = ["--index-url", torch_index()] if torch_index() else []
        run_pip([str(inside), "-m", "pip", "install", "--disable-pip-version-check", *index, f"torch=={torch}.*"])
    return inside


def versions_of(python: Path) -> dict[str, str | None]:
    """The versions of a Python and of its torch; None if it has none."""
    return json.loads(subprocess.check_output([str(python), "-c", VERSIONS], text=True))


def trial(python: Path, wheel: Path, package: str, device: str = "cpu") -> dict[str, str]:
    """Installs a wheel beside an environment, not into it, and checks it there: "passed" or why not, by check."""
    with tempfile.TemporaryDirectory() as place:
        site = Path(place, "site")
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
        installed = subprocess.run([*pip, "--target", str(site), str(wheel)], capture_output=True, text=True)
        if installed.returncode != 0:
            return {"install": cause(installed.stderr)}
        run = subprocess.run(
            [str(python.absolute()), "-m", "common.trial", package, device],
            cwd=place,
            # Nothing of this process's environment: no compiler is found, and no other package.
            env={"PATH": place, "HOME": place, "PYTHONPATH": f"{site}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        checks = {}
        for line in run.stdout.splitlines():
            checks |= json.loads(line)
        if not checks:
            raise UserError(f"the trial of {wheel.name} did not begin: {cause(run.stderr)}")
        if run.returncode < 0:
            checks[list(checks)[-1]] = f"ended by {signal.Signals(-run.returncode).name}"
        return {name: outcome.replace(f"{site}/", "") for name, outcome in checks.items()}


def needs(wheel: Path) -> dict[str, list[str]]:
    """The functions that a wheel's library takes from elsewhere: of torch's C++, torch's C shims, and Python's."""
    with tempfile.TemporaryDirectory() as place:
        shutil.unpack_archive(wheel, place, "zip")
        (library,) = Path(place).rglob("_C*.so")
        return undefined(library)


def undefined(library: Path) -> dict[str, list[str]]:
    """The same of a library."""
    shown = subprocess.run(["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=True)
    names = [line.split()[-1].partition("@")[0] for line in shown.stdout.splitlines()]
    of = {"C++": r"_Z.*(2at|3c10|5torch)\w+", "C": r"(aoti_)?torch_\w+", "Python": r"_?Py\w+"}
    return {kind: sorted(filter(re.compile(pattern).fullmatch, names)) for kind, pattern in of.items()}


def markdown() -> str:
    """What was recorded: a line for each wheel, a column for each environment, and below what went wrong."""
    if not results.INSTALLED.exists():
        return "Not tried yet: `make wheels`."
    record = json.loads(results.INSTALLED.read_text())
    versions = list(dict.fromkeys((row["python"], row["torch"]) for row in record["rows"]))
    lines, notes = [], {}
    for wheel in record["wheels"]:
        kind = wheel["kind"]
        stale = " (stale: sources changed since)" if record["sources"][kind] != source_hash(kind) else ""
        line = [kind + stale, f"`{wheel['file']}`", f"{wheel['bytes'] / 1000:.0f}"]
        line += [str(wheel[of]) for of in ("C++", "C", "Python")]
        lines.append(line + [cell(row["checks"], notes) for row in record["rows"] if row["kind"] == kind])
    heads = [f"Python {minor(python)}<br>torch {minor(torch)}" for python, torch in versions]
    head = ["bound through", "file", "kB", "of torch's<br>C++", "of its<br>C shims", "of<br>Python", *heads]
    rows = [head, ["---", "---", *["---:"] * 4, *["---"] * len(heads)], *lines]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    built = record["built_with"]
    return (
        f"Built for the CPU with Python {minor(built['python'])} and torch {minor(built['torch'])}, "
        f"{record['date'][:10]}: how many functions each wheel takes from torch and from Python, and what became of "
        f"it in environments without a compiler.\n\n{table}\n\n"
        + "\n".join(f"{mark}. {text}" for text, mark in notes.items())
    )


def cell(checks: dict[str, str], notes: dict[str, int]) -> str:
    """Either "runs" or the number of the note that says what went wrong."""
    wrong = [f"{name}: `{outcome}`" for name, outcome in checks.items() if outcome != "passed"]
    return f"no: {notes.setdefault('; '.join(wrong), len(notes) + 1)}" if wrong else "runs"


def minor(version: str) -> str:
    """3.12 for 3.12.1."""
    return ".".join(version.split(".")[:2])


def source_hash(kind: str) -> str:
    """A hash of the sources of a kind of wheel."""
    return results.hash_of(KINDS[kind][0])
