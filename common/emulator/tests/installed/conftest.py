"""Makes the package importable as `cuemu`, installed or not, and gives its tests one cache."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def environment(tmp_path_factory) -> dict[str, str]:
    """The environment of a process that can import `cuemu`, with a cache for this session."""
    variables = {**os.environ, "EMULATOR_CACHE": str(tmp_path_factory.mktemp("cache"))}
    if importlib.util.find_spec("cuemu") is None:
        folder = tmp_path_factory.mktemp("package")
        (folder / "cuemu").symlink_to(PACKAGE)
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return variables


@pytest.fixture
def cuemu(environment, tmp_path) -> Run:
    """Runs the command in the test's folder."""
    return lambda *words, **variables: run([sys.executable, "-m", "cuemu", *words], tmp_path, environment | variables)


@pytest.fixture
def python(environment, tmp_path) -> Run:
    """Runs Python code in the test's folder."""
    return lambda code, **variables: run([sys.executable, "-c", code], tmp_path, environment | variables)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Runs a command and returns the finished process, with its output as text."""
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
