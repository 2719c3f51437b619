"""Tools for builds in the notebooks: a build folder, commands that run in it, and the times of first builds.

BUILD = build_folder()
status, printed = run("c++", "-c", write("one.cpp", "int one() { return 1; }"))
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .build.host import cpp_standard
from .build.notebooks import notebook_builds, remove_locks

__all__ = ["Timings", "build_folder", "remove_locks", "run", "torch_compiler", "write"]


def build_folder() -> Path:
    """A folder for builds with this version of torch; torch's `load` and `load_inline` use it from now on, too."""
    folder = notebook_builds()
    os.environ["TORCH_EXTENSIONS_DIR"] = str(folder)
    return folder


def torch_compiler(standard: str | None = None) -> list[str]:
    """The compiler, and the flags for a source that includes torch's or Python's headers, without their warnings.

    The C++ standard is the one that torch itself is built with, unless another is given, such as "-std=c++17".
    """
    from torch.utils.cpp_extension import include_paths

    folders = [*include_paths(), sysconfig.get_path("include")]
    isystem = [word for folder in folders for word in ("-isystem", folder)]
    return [os.environ.get("CXX", "c++"), standard or cpp_standard(), *isystem]


def run(*command: object, folder: Path | str | None = None, text: str | None = None) -> tuple[int, str]:
    """Runs a command, by default in the build folder, with a text as its input.

    Returns its exit status and its output.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder or build_folder(), input=text, capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def write(name: str, text: str) -> Path:
    """Writes a file in the build folder, unless it has this text already: a newer file would be compiled again."""
    path = build_folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


class Timings:
    """Times of steps in seconds. The longest time is kept in a file, because later runs find everything built.

    with timed("torch/extension.h"):
        first = load_inline(...)
    """

    def __init__(self, path: Path):
        self.path = path
        self.seconds: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Times the body of the `with`, unless it raises an exception."""
        start = time.perf_counter()
        yield
        self.seconds[name] = max(time.perf_counter() - start, self.seconds.get(name, 0))
        self.path.write_text(json.dumps(self.seconds, indent=1))
