"""Installs the packages of requirements.txt that this Python lacks; keeps those that are new enough.

Imports only the standard library, because it runs before anything is installed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import pip, versions
from ..console import say
from ..errors import UserError
from ..paths import ROOT

# Megabytes that pip downloads for each requirement and its dependencies, in this order (x86-64 Linux, Python 3.11).
DOWNLOAD_MB = {
    "torch": 3000,  # 540 its own, the rest CUDA's libraries and the Triton compiler
    "numpy": 17,
    "setuptools": 1,
    "wheel": 1,
    "ninja": 1,
    "pybind11": 1,
    "pytest": 2,
    "pytest-xdist": 1,
    "matplotlib": 25,
    "scikit-learn": 46,  # 35 of it scipy
    "jupytext": 2,
    "nbclient": 2,
    "nbformat": 1,
    "ipykernel": 10,
    "jupyterlab": 31,
    "clang-format": 2,
    "ruff": 11,
    "import-linter": 3,
    "codespell": 1,
}
DISK_PER_DOWNLOAD = 1.9  # bytes on disk for each byte downloaded: 5.9 GB for 3.2
# Packages that belong to one build of torch and so must not be pinned for another.
TORCH_BUILD = ("nvidia-", "cuda-", "triton")


@dataclass(frozen=True)
class Requirement:
    """One line of requirements.txt: `name`, `>=` or `==`, version, and the comment that says what it is for."""

    name: str
    relation: str
    version: str
    purpose: str

    def __str__(self) -> str:
        return f"{self.name}{self.relation}{self.version}"

    def met_by(self, installed: str | None) -> bool:
        """Whether an installed version is sufficient; None means that the package is not installed."""
        if installed is None:
            return False
        have, want = versions.release(installed), versions.release(self.version)
        return have == want if self.relation == "==" else have >= want


def requirements(path: Path = ROOT / "requirements.txt") -> list[Requirement]:
    """The requirements of requirements.txt, in its order."""
    line = re.compile(r"^([\w.-]+)(>=|==)([\d.]+)\s*#\s*(.+)$", re.MULTILINE)
    return [Requirement(*found.groups()) for found in line.finditer(path.read_text())]


def unmet_requirements() -> list[Requirement]:
    """The requirements that this Python does not meet."""
    return [wanted for wanted in requirements() if not wanted.met_by(versions.installed_version(wanted.name))]


def install_missing() -> int:
    """Installs missing packages; prints one line if there are none.

    Raises `UserError` if torch 2.11 or newer is not installed at the end. If only other packages are missing, it
    prints a warning: stages build and run without plots and notebooks, so a machine without a network can continue.
    """
    wanted = unmet_requirements()
    if not wanted:
        say(f"Packages: all there, torch {versions.installed_version('torch')}.")
        return 0
    torch = [requirement for requirement in wanted if requirement.name == "torch"]
    if torch and (old := versions.installed_version("torch")):
        raise UserError(
            f"torch {old} is too old: the workbook needs {torch[0].version}. It stays as it is. To upgrade it: "
            f"{sys.executable} -m pip install '{torch[0]}'. To leave it alone: deactivate that environment, or drop "
            "PYTHON=..., and make uses an environment of its own (.venv)"
        )
    try:
        check_prerequisites(wanted)
        announce_download(wanted)
        if torch:
            pip_install(torch, pip.torch_index())
        if others := [
            requirement for requirement in unmet_requirements() if requirement.name != "torch"
        ]:  # torch brings some
            pip_install(others)
    except UserError as error:
        lacking = unmet_requirements()
        if any(requirement.name == "torch" for requirement in lacking):
            index = pip.torch_index()
            hint = f". TORCH_INDEX is {index}; without it, pip's usual index provides torch for CUDA" if index else ""
            raise UserError(f"torch could not be installed: {error}{hint}") from None
        say(f"warning: not installed: {error}")
        say("Commands that need these packages will not run; all others will:")
        for requirement in lacking:
            say(f"  {requirement.name:<14} {requirement.purpose}")
        return 0
    say("Installed. Everything that the workbook needs is there now.")
    return 0


def announce_download(wanted: list[Requirement]) -> None:
    """Says what is missing, where it will be installed and roughly how much will be downloaded."""
    say(f"Missing in {Path(sys.prefix)} (Python {sys.version.split()[0]}):")
    for requirement in wanted:
        old = versions.installed_version(requirement.name)
        replaces = f" (now {old})" if old else ""
        size = download_megabytes([requirement]) or "?"
        say(f"  {requirement.name:<13} {size:>5} MB  {requirement.purpose}{replaces}")
    megabytes = download_megabytes(wanted)
    if any(requirement.name == "torch" for requirement in wanted):
        if pip.torch_index():
            say(f"To download: torch from {pip.torch_index()}, and about {megabytes} MB for the rest.")
            return
        say(f"To download: about {megabytes / 1000:.1f} GB, most of it torch with CUDA's libraries.")
        say("Without an NVIDIA GPU, the CPU build is enough, a tenth of that: press Ctrl+C, and run the command")
        say("again with TORCH_INDEX=ADDRESS. pytorch.org/get-started/locally shows this address after --index-url,")
        say("for Linux, Pip and CPU.")
    else:
        say(f"To download: at most {megabytes} MB.")


def download_megabytes(wanted: list[Requirement]) -> int:
    """Roughly how much pip will download, not counting torch if the user gave its index."""
    return sum(DOWNLOAD_MB[each.name] for each in wanted if each.name != "torch" or not pip.torch_index())


def check_prerequisites(wanted: list[Requirement]) -> None:
    """Checks before the download that the installation can succeed. Raises `UserError` if it cannot."""
    marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    if sys.prefix == sys.base_prefix and marker.exists() and not os.environ.get("PIP_BREAK_SYSTEM_PACKAGES"):
        raise UserError(
            f"{sys.executable} belongs to the system, which does not allow pip to install packages into it. "
            "Without PYTHON=..., make uses an environment of its own (.venv)"
        )
    if problem := disk_problem(download_megabytes(wanted) / 1000):
        raise UserError(problem)
    if importlib.util.find_spec("pip") is None:
        command = [sys.executable, "-m", "ensurepip"]
        if subprocess.run(command, capture_output=True).returncode != 0:
            raise UserError(
                f"{sys.executable} has no pip. On Debian and Ubuntu: sudo apt install python3-venv python3-pip"
            )


def disk_problem(gigabytes: float) -> str | None:
    """A message if a disk is too full. Pip keeps the download in the temporary folder while it installs."""
    needs: dict[int, float] = {}
    places = {Path(sys.prefix): gigabytes * DISK_PER_DOWNLOAD, Path(tempfile.gettempdir()): gigabytes}
    for place, size in places.items():
        disk = place.stat().st_dev
        needs[disk] = needs.get(disk, 0) + size
    for place in places:
        free, need = shutil.disk_usage(place).free / 1e9, needs[place.stat().st_dev]
        if free < need:
            return f"the disk is too full: {need:.1f} GB are needed in {place}, {free:.1f} GB are free"
    return None


def pip_install(wanted: list[Requirement], index: str | None = None) -> None:
    """Runs pip and shows its progress. Raises `UserError` with the cause if it fails.

    torch itself comes from `index`, if given; its dependencies may also come from pip's usual index.
    """
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--retries", "2"]
    tested = constraints()
    if index:
        # The build there may be older than the tested version, but must not be newer.
        pip.run_pip([*command, "--no-deps", "--index-url", index, f"{wanted[0]},<={tested['torch']}"])
        command += ["--extra-index-url", index]
    pins = constraints_here()
    now = [f"{each.name}=={pins.pop(each.name)}" for each in wanted]
    file = ROOT / "build" / "constraints.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    pip.run_pip([*command, "-c", str(file), *now])


def constraints(
    path: Path = ROOT / "constraints.txt", python: tuple[int, ...] = sys.version_info[:3]
) -> dict[str, str]:
    """The tested version of each package, from the lines of constraints.txt that are for this Python."""
    line = re.compile(r'^([\w.-]+)==(\S+)(?: ; python(?:_full)?_version (>=|<) "([\d.]+)")?$', re.MULTILINE)
    pins = {}
    for name, version, relation, bound in line.findall(path.read_text()):
        if not relation or (relation == ">=") == (tuple(python) >= versions.release(bound)):
            pins[name] = version
    return pins


def constraints_here() -> dict[str, str]:
    """The constraints for this environment: tested versions for packages to install; installed ones stay."""
    to_come = {each.name for each in unmet_requirements()}
    torch = versions.installed_version("torch")
    pins = {"torch": torch} if torch else {}
    for name, version in constraints().items():
        of_another_torch = torch is not None and name.startswith(TORCH_BUILD)
        if name in to_come or not (versions.installed_version(name) or of_another_torch):
            pins[name] = version
    return pins
