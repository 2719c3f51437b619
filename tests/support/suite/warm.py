"""Runs scripts in processes that have already imported torch: forks of a process that has done nothing else.

A fork takes a twentieth of a second, whereas an import of torch takes seconds. Each fork is a separate process with
its own environment and output, so a crash does no harm to the others.
"""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path

PRELOADED = ["torch", "common.build.modules", "support.suite.warm"]


@functools.cache
def context() -> ForkServerContext:
    """The process from which scripts are forked. It ends with this process."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(PRELOADED)
    return found


def run_warm(
    code: str, *arguments: str, cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a script as `python -c code arguments` would."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        names = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (stdout, stderr)]
        process = context().Process(target=run_script, args=(code, arguments, str(cwd), dict(environment), names))
        process.start()
        process.join()
        for file in (stdout, stderr):
            file.seek(0)
        said = [file.read().decode(errors="replace") for file in (stdout, stderr)]
    return subprocess.CompletedProcess(["python", "-c", code, *arguments], process.exitcode, *said)


def run_script(
    code: str, arguments: tuple[str, ...], cwd: str, environment: dict[str, str], names: list[str]
) -> None:
    """The main function of a forked process, which ends as a script does."""
    for stream, name in enumerate(names, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    sys.path.insert(0, "")
    status = 0
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    ctypes.pythonapi.Py_Exit(status)
