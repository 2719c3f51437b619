"""Programs that some tests need, and where they are on this machine."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path


def cuobjdump() -> Path | None:
    """The cuobjdump of the toolkit, or the one that is installed with torch's CUDA wheels."""
    if found := shutil.which("cuobjdump"):
        return Path(found)
    triton = importlib.util.find_spec("triton")
    beside = Path(triton.origin).parent / "backends" / "nvidia" / "bin" / "cuobjdump" if triton else None
    return beside if beside and beside.exists() else None


@functools.cache
def another_python() -> str | None:
    """A Python on PATH of another version that supports the limited API of 3.10."""
    for minor in range(10, 20):
        name = f"python3.{minor}"
        if minor != sys.version_info.minor and shutil.which(name):
            if subprocess.run([name, "-c", ""], capture_output=True).returncode == 0:  # not only a pyenv shim
                return name
    return None
