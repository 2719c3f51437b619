"""Shared setup of the tests. Tests that lack a package or a device are listed at the end by what they need."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import zlib
from collections import Counter

import pytest

from support.programs import another_python, cuobjdump

# Threads of torch and OpenMP per test process: the processes share the cores, and waiting threads spin.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if WORKERS > 1:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(2, (os.cpu_count() or 1) // WORKERS)))

PROGRAMS = {
    "g++": "the C++ compiler: sudo apt install g++",
    "nvcc": "the CUDA Toolkit: developer.nvidia.com/cuda-downloads",
    "compute-sanitizer": "compute-sanitizer, a part of the CUDA Toolkit",
    "ninja": "ninja: make setup",
    "git": "git: sudo apt install git",
    "make": "make: sudo apt install make",
    "cmake": "CMake: sudo apt install cmake",
}
HEADERS = {
    "googletest": ("gtest/gtest.h", "GoogleTest: sudo apt install libgtest-dev"),
    "zlib": ("zlib.h", "zlib's header: sudo apt install zlib1g-dev"),
    "boost": ("boost/beast/http.hpp", "Boost: sudo apt install libboost-dev"),
    "openssl": ("openssl/evp.h", "OpenSSL: sudo apt install libssl-dev"),
    "nlohmann-json": ("nlohmann/json.hpp", "JSON for Modern C++: sudo apt install nlohmann-json3-dev"),
}
pytest_plugins = ["pytester", "support.suite.scheduling", "support.proofs.plugin"]
NEEDS = "needs "  # the beginning of the skip reason; pytest puts "Skipped: " before it


def lacking(need: str) -> str | None:
    """How to provide a need that is missing; None if it is available."""
    if need == "bwrap":
        return cannot_isolate()
    if need == "cuobjdump":
        return None if cuobjdump() else "cuobjdump: CUDA Toolkit, or triton, which torch for CUDA brings"
    if need == "another Python":
        return None if another_python() else "a second Python, 3.10 or newer, on PATH, such as python3.12"
    if need == "another torch":
        return None if os.environ.get("OTHER_TORCH") else "OTHER_TORCH=..., a Python with torch of another version"
    if need == "pip":  # find_spec would make setuptools give way to the distutils of old Pythons
        return None if list(importlib.metadata.distributions(name="pip")) else "pip: python -m ensurepip"
    if need in PROGRAMS:
        return None if shutil.which(need) else PROGRAMS[need]
    if need in HEADERS:
        header, brings = HEADERS[need]
        return None if has_header(header) else brings
    if need.startswith("gpu"):
        import torch

        count = int(need.partition(":")[2] or 1)
        return None if torch.cuda.device_count() >= count else f"{count} GPU(s) that torch can use: make doctor"
    how = "pip install flashrnn" if need == "flashrnn" else "make setup"
    return None if importlib.util.find_spec(need) else f"the Python package {need}: {how}"


@functools.cache
def cannot_isolate() -> str | None:
    """Why bubblewrap does not work here, even if it is installed, as in a container without privileges."""
    from common.exercises.grading import sandbox

    return sandbox.find_problem(sandbox.Sandbox("bubblewrap"))


@functools.cache
def has_header(name: str) -> bool:
    """Whether the C++ compiler finds a header."""
    from common.emulator import compiler_command
    from common.setup import facts

    return facts.can_compile(f"#include <{name}>\n", compiler_command())


def pytest_sessionstart(session: pytest.Session) -> None:
    from support.suite.prebuilt import build_before_workers

    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    build_before_workers(session.config, reporter.write_line if reporter else print)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    make_repeatable(item.nodeid)
    for marker in item.iter_markers("needs"):
        for need in marker.args:
            if lacking(need):
                pytest.skip(f"{NEEDS}{need}")


def make_repeatable(name: str) -> None:
    """Makes random numbers depend on the name of a test: what has passed passes again, and a failure can be repeated.

    `torch.seed` would take a seed from the operating system. Checks draw theirs from it (`fresh_seed`).
    """
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.manual_seed(zlib.crc32(name.encode()))
        torch.seed = lambda: int(torch.randint(2**31, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    begin = f"Skipped: {NEEDS}"
    needs = Counter(reason.removeprefix(begin) for reason in reasons if reason.startswith(begin))
    if not needs:
        return
    terminalreporter.section("not run on this machine")
    for need, count in sorted(needs.items()):
        terminalreporter.write_line(f"{need}: {count} tests. What would run them: {lacking(need)}")
