"""Two runs of all tests at once: the second reports that it waits, and continues when the first has ended."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from common import stages
from common.errors import UserError
from support.suite import prebuilt
from support.suite.prebuilt import run_alone, wanted


def test_a_second_run_waits_for_the_first(tmp_path):
    said, waits, runs = [], threading.Event(), threading.Event()
    first = run_alone(tmp_path / "build", said.append)
    assert said == []

    def say(line: str) -> None:
        said.append(line)
        waits.set()

    def second() -> None:
        run_alone(tmp_path / "build", say).close()
        runs.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert waits.wait(30)
    assert not runs.is_set()
    first.close()
    thread.join(30)
    assert runs.is_set()
    assert said == [f"another run of all tests uses {tmp_path / 'build'}; this run waits until that one has ended"]


def test_every_stage_is_built_for_every_target_here():
    names = [name for name, _ in wanted()]
    assert len(set(names)) == len(names)
    assert all(int(name.split()[1]) in {stage.number for stage in stages.STAGES} for name in names if "stage" in name)


def test_builds_run_side_by_side_and_a_failure_is_left_for_its_test(tmp_path, monkeypatch):
    both = threading.Barrier(2, timeout=30)

    def fail() -> None:
        both.wait()
        raise UserError("does not build")

    options = SimpleNamespace(keyword="", collectonly=False)
    config = SimpleNamespace(option=options, args_source=pytest.Config.ArgsSource.TESTPATHS, stash={})
    config.getoption = lambda name, default: 2
    monkeypatch.setattr(prebuilt.paths, "build_dir", lambda: tmp_path)
    monkeypatch.setattr(prebuilt, "max_jobs", lambda: 2)
    monkeypatch.setattr(prebuilt, "wanted", lambda: [("one", both.wait), ("another", fail)])
    monkeypatch.setattr(prebuilt.deploy, "why_unavailable", lambda: "no CMake")
    prebuilt.build_before_workers(config, print)
    config.stash[prebuilt.ALONE].close()
