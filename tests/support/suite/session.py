"""A pytest plugin: what all tests need before they run."""

from __future__ import annotations

import os
import sys
import zlib

import pytest

# Threads of torch and OpenMP per test process: the processes share the cores, and waiting threads spin.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if WORKERS > 1:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(2, (os.cpu_count() or 1) // WORKERS)))


@pytest.hookimpl(tryfirst=True)  # the versions that proofs hold for include the compiler
def pytest_configure() -> None:
    from common.errors import UserError
    from common.setup.compiler import choose_compiler

    try:
        note = choose_compiler()  # workers inherit the choice
    except UserError as error:
        pytest.exit(f"error: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    if note:
        print(note)


def pytest_sessionstart(session: pytest.Session) -> None:
    from support.suite.prebuilt import build_before_workers

    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    build_before_workers(session.config, reporter.write_line if reporter else print)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    make_repeatable(item.nodeid)


def make_repeatable(name: str) -> None:
    """Makes random numbers depend on the name of a test: what has passed passes again, and a failure can be repeated.

    `torch.seed` would take a seed from the operating system. Checks draw theirs from it (`fresh_seed`).
    """
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.manual_seed(zlib.crc32(name.encode()))
        torch.seed = lambda: int(torch.randint(2**31, ()))
