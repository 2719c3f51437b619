"""Builds side by side share one pool of compiler jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from common.emulator.toolchain import jobs

# A compiler that notes how many of its kind run.
NOTES = """#!/bin/sh
touch {running}/$$
ls {running} | wc -l >> {counts}
sleep 0.2
rm {running}/$$
exit 7
"""


@pytest.fixture
def pool(tmp_path, monkeypatch) -> Path:
    """A folder of its own for temporary files, and so for the pool."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("cores", "gigabytes", "given", "jobs_of_machine"),
    [(2, 24, "", 2), (16, 128, "", 16), (16, 2, "", 1), (16, 6, "", 4), (16, 128, "1", 1), (2, 24, "6", 6)]
    + [(2, 24, wrong, 2) for wrong in ("0", "many", "-3")],
)
def test_the_jobs_fit_the_machine(monkeypatch, cores, gigabytes, given, jobs_of_machine):
    monkeypatch.setenv("MAX_JOBS", given)
    monkeypatch.setattr(jobs, "count_cores", lambda: cores)
    monkeypatch.setattr(jobs, "find_memory", lambda: gigabytes << 30)
    assert jobs.max_jobs() == jobs_of_machine


def test_a_container_may_have_less_memory_than_its_machine(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(jobs, "CGROUP_LIMITS", (str(tmp_path / "missing"), str(limit)))
    limit.write_text("max\n")
    whole = jobs.find_memory()
    limit.write_text(f"{2 << 30}\n")
    assert whole > 2 << 30 == jobs.find_memory()


@pytest.mark.parametrize("at_once", [1, 3])
def test_processes_share_the_pool(pool, monkeypatch, at_once):
    running, counts, compiler = pool / "running", pool / "counts", pool / "g++"
    running.mkdir()
    compiler.write_text(NOTES.format(running=running, counts=counts))
    compiler.chmod(0o755)
    monkeypatch.setenv("MAX_JOBS", str(at_once))
    wrapper = jobs.write_wrapper(pool / "wrappers", [str(compiler), "-an option"])
    started = [subprocess.Popen([wrapper, "-c"]) for _ in range(6)]
    assert [process.wait(60) for process in started] == [7] * 6
    assert wrapper.name == "g++"
    assert max(map(int, counts.read_text().split())) == at_once


def test_a_killed_process_keeps_its_job_until_its_compiler_ends(pool, monkeypatch):
    monkeypatch.setenv("MAX_JOBS", "1")
    pid = pool / "pid"
    compiler = ["sh", "-c", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 100"]
    process = subprocess.Popen([*jobs.launcher(), *compiler])
    while not pid.exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    (file,) = (pool / f"compilers-{os.getuid()}").iterdir()
    with file.open("a") as held:
        with pytest.raises(BlockingIOError):
            jobs.fcntl.flock(held, jobs.fcntl.LOCK_EX | jobs.fcntl.LOCK_NB)
        os.kill(int(pid.read_text()), signal.SIGKILL)
        assert jobs.wait_for_lock([held]) == held.fileno()


def test_a_pool_that_cannot_be_used_stops_no_compiler(pool):
    """As on a full disk, or if the folder is another user's."""
    (pool / f"compilers-{os.getuid()}").write_text("not a folder")
    with jobs.hold_job() as held:
        assert held == []
    assert subprocess.run([*jobs.launcher(), sys.executable, "-c", "raise SystemExit(3)"]).returncode == 3
