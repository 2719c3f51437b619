"""Which tests run on one worker."""

from __future__ import annotations

import os
import re
import sys

import pytest

from common.paths import ROOT
from support.suite import scheduling
from support.suite.scheduling import APART, group_of

TESTS = "import pytest\n@pytest.mark.parametrize('k', range(12))\ndef test_it(k): {body}\n"
# Tests that wait for the other worker, so that one worker cannot run all of them before the other has started.
MEETING = (
    "import os, time\nfrom pathlib import Path\n"
    "def meet():\n"
    "    here = Path(__file__).parent\n"
    "    (here / os.environ['PYTEST_XDIST_WORKER']).touch()\n"
    "    until = time.monotonic() + 60\n"
    "    while len(list(here.glob('gw*'))) < 2 and time.monotonic() < until: time.sleep(0.05)\n"
) + TESTS.format(body="meet()")


@pytest.mark.parametrize(("cores", "gigabytes", "workers"), [(2, 24, 2), (16, 128, 16), (16, 16, 6), (4, 1, 1)])
def test_each_worker_has_a_core_and_memory(monkeypatch, cores, gigabytes, workers):
    monkeypatch.setattr(scheduling.jobs, "count_cores", lambda: cores)
    monkeypatch.setattr(scheduling.jobs, "find_memory", lambda: gigabytes << 30)
    assert scheduling.pytest_xdist_auto_num_workers() == workers


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/build/test_library.py::test_it", "tests/build/test_library.py"),
        ("tests/build/test_library.py::TestIt::test_it[a::b]", "tests/build/test_library.py"),
        ("tests/stages/test_fused.py::test_it[host-1]", "tests/stages/test_fused.py::test_it[host-1]"),
        (
            "common/emulator/tests/test_mistakes.py::test_it[leaks-wrong_a-b]",
            "common/emulator/tests/test_mistakes.py::leaks",
        ),
        (
            "common/emulator/tests/test_mistakes.py::test_takes_it[leaks]",
            "common/emulator/tests/test_mistakes.py::leaks",
        ),
        ("common/emulator/tests/test_mistakes.py::test_it", "common/emulator/tests/test_mistakes.py::test_it"),
        ("tests/exercises/runner/test_runner.py::test_it[a]", "tests/exercises/runner/test_runner.py::test_it"),
        (
            "tests/docs/troubleshooting/test_running.py::test_it",
            "tests/docs/troubleshooting/test_running.py::test_it",
        ),
    ],
)
def test_the_group_of_a_test(test, group):
    assert group_of(test) == group


def test_the_files_are_there():
    assert [path for path in APART if not (ROOT / path).exists()] == []


@pytest.mark.needs("xdist")
def test_a_group_runs_on_one_worker(pytester, monkeypatch):
    apart = "tests/stages/test_fused.py"
    for name in (apart, "tests/a/test_one.py", "tests/a/test_two.py"):
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MEETING if name == apart else TESTS.format(body="pass"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    report = pytester.runpytest_subprocess(
        "-p", "support.suite.scheduling", "-n", "2", "--no-loadscope-reorder", "-v", "tests"
    )
    ran = re.findall(r"\[(gw\d)\].* PASSED (\S+)::", report.stdout.str())
    assert len(ran) == 36
    for name in ("tests/a/test_one.py", "tests/a/test_two.py"):
        assert len({worker for worker, file in ran if file == name}) == 1
    assert len({worker for worker, file in ran if file == apart}) == 2


@pytest.mark.needs("xdist")
def test_the_test_that_crashes_its_worker_fails_once_and_the_rest_runs(pytester, monkeypatch):
    path = pytester.path / "tests" / "test_crash.py"
    path.parent.mkdir()
    path.write_text(
        "import os, pytest\n@pytest.mark.parametrize('k', range(6))\ndef test_it(k):\n    if k == 2: os._exit(1)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    report = pytester.runpytest_subprocess("-p", "support.suite.scheduling", "-n", "2", "tests")
    report.assert_outcomes(passed=5, failed=1)
    report.stdout.fnmatch_lines(["*worker 'gw?' crashed while running 'tests/test_crash.py::test_it?2?'*"])
