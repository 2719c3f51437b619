"""A pytest plugin for tests that need a package, a program or a device. Without it they are skipped, and counted.

@pytest.mark.needs("g++", "gpu")
def test_...
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import shutil
from collections import Counter

import pytest

from support.programs import another_python, cuobjdump

PROGRAMS = {
    "g++": "the C++ compiler: sudo apt install g++",
    "nvcc": "the CUDA Toolkit: developer.nvidia.com/cuda-downloads",
    "compute-sanitizer": "compute-sanitizer, a part of the CUDA Toolkit",
    "ninja": "ninja: make setup",
    "git": "git: sudo apt install git",
    "make": "make: sudo apt install make",
    "cmake": "CMake: sudo apt install cmake",
    "gdb": "gdb: sudo apt install gdb",
    "sha256sum": "sha256sum: sudo apt install coreutils",
}
HEADERS = {
    "googletest": ("gtest/gtest.h", "GoogleTest: sudo apt install libgtest-dev"),
    "zlib": ("zlib.h", "zlib's header: sudo apt install zlib1g-dev"),
    "boost": ("boost/beast/http.hpp", "Boost: sudo apt install libboost-dev"),
    "openssl": ("openssl/evp.h", "OpenSSL: sudo apt install libssl-dev"),
    "nlohmann-json": ("nlohmann/json.hpp", "JSON for Modern C++: sudo apt install nlohmann-json3-dev"),
}
NEEDS = "needs "  # the beginning of the skip reason; pytest puts "Skipped: " before it


@functools.cache
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


def needs_of(item: pytest.Item) -> set[str]:
    """What a test needs."""
    return {need for marker in item.iter_markers("needs") for need in marker.args}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for need in sorted(needs_of(item)):
        if lacking(need):
            pytest.skip(f"{NEEDS}{need}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    begin = f"Skipped: {NEEDS}"
    needs = Counter(reason.removeprefix(begin) for reason in reasons if reason.startswith(begin))
    if not needs:
        return
    terminalreporter.section("not run on this machine")
    for need, count in sorted(needs.items()):
        terminalreporter.write_line(f"{need}: {count} tests. What would run them: {lacking(need)}")
