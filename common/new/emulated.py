"""`make emulate FILE=work/mycell`: runs the tests of your own project with its CUDA kernels on the emulator."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import UserError
from ..paths import build_dir


def test_on_emulator(folder: Path, options: list[str]) -> int:
    """Builds the folder's library for the emulator and runs its tests in a copy that has it; pytest's exit status.

    The tests stop at the first failure, because one mistake in a kernel fails many of them with the same report.
    The folder itself is not changed. Raises `UserError` if it does not build or was not made by `make new`.
    """
    package = next((path.parent for path in folder.glob("*/__init__.py") if (folder / "built.py").exists()), None)
    if package is None:
        raise UserError(f"{folder} was not made by make new; for a CUDA program: make emulate FILE=x.cu")
    if not all(map(importlib.util.find_spec, ("torch", "pytest"))):
        raise UserError("this needs torch and pytest; make setup installs them")
    from ..build.library import build_folder

    print(f"Building the CUDA kernels of {folder} for the CPU: this takes a minute if they have changed", flush=True)
    library = build_folder(folder.resolve(), "emulator", f"{package.name}-emulator", package.name).path
    with tempfile.TemporaryDirectory(prefix=f"{package.name}-", dir=build_dir()) as place:
        copy = Path(place) / folder.resolve().name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("_C*.so", "build", "dist", ".*", "__pycache__"))
        shutil.copyfile(library, copy / package.name / "_C.abi3.so")
        return subprocess.run([sys.executable, "-m", "pytest", "--exitfirst", *options], cwd=copy).returncode
