"""Builds what many tests need once, before the workers start. A second `make test` waits until the first has ended.

That is: the stages for every target available here, which includes the emulator's runtime, torch's precompiled
headers for small sources, and stage 8's program. Its packages are built while the first tests run.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pytest

from common import deploy, inline, paths, stages
from common.build import library, targets
from common.emulator import max_jobs
from common.errors import UserError

ALONE = pytest.StashKey[IO[str]]()
CPP = "#include <ATen/core/Tensor.h>\nat::Tensor same(const at::Tensor& x) { return x; }\n"
CUDA = "#include <cuda_runtime.h>\n"


def build_before_workers(config: pytest.Config, say: Callable[[str], None]) -> None:
    """Builds before a run of all tests with several workers. A build failure is left for the test that reports it."""
    is_worker = hasattr(config, "workerinput")
    chosen = config.option.keyword or config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if is_worker or chosen or config.option.collectonly or not config.getoption("numprocesses", None):
        return
    config.stash[ALONE] = run_alone(paths.build_dir(), say)
    with ThreadPoolExecutor(max_jobs()) as pool:
        for name, seconds in pool.map(run_timed, wanted()):
            if seconds > 1:
                say(f"built {name} in {seconds:.0f} s")
    if not deploy.why_unavailable():
        for process in deploy.build_packages_apart():
            atexit.register(process.kill)


def run_timed(build: tuple[str, Callable[[], object]]) -> tuple[str, float]:
    """Runs a build; returns its name and the seconds that it took."""
    name, function = build
    start = time.perf_counter()
    with contextlib.suppress(UserError):  # the test that needs it reports the failure
        function()
    return name, time.perf_counter() - start


def run_alone(folder: Path, say: Callable[[str], None]) -> IO[str]:
    """Waits until no other run of all tests uses this build folder. The caller keeps the locked file open."""
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "tests.lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another run of all tests uses {folder}; this run waits until that one has ended")
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def wanted() -> list[tuple[str, Callable[[], object]]]:
    """The builds to do, each with its name; the longest, which are those of the last stages, come first."""
    pairs = [
        (stage, target)
        for stage in reversed(stages.STAGES)
        if stage.is_here and targets.has_cpp(stage)
        for target in stage.targets
        if not targets.why_unavailable(target)
    ]
    found = [
        (f"stage {s.number} for {target}", lambda s=s, target=target: library.build_stage(s, target))
        for s, target in pairs
    ]
    if not targets.why_unavailable("emulator"):
        found.append(("torch's headers", lambda: inline.inline("prebuilt", CPP, CUDA, ["same"], target="emulator")))
    if not deploy.why_unavailable():
        found.append(("lltm_serve", deploy.build_program))
    return found
