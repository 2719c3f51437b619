"""What exercises leave in build/ stays bounded, and each learner has builds of their own."""

from __future__ import annotations

import os
import time

import pytest

from common import paths
from common.exercises import failures, find
from common.exercises.judging.work import Work
from common.exercises.runner import builds

DAY = 86400


def test_what_exercises_leave_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILD_DIR", str(tmp_path))
    monkeypatch.setattr(builds, "LIMITS", dict.fromkeys(builds.LIMITS, 0))
    old = [tmp_path / name for name in ("exercises/ab/host/1", "headers/2", "objects/3.o", "lltm_stage2-host/4")]
    new = [tmp_path / name for name in ("exercises/ab/host/5", "headers/6", "objects/7.o")]
    beside = [tmp_path / "exercises/ab/host" / name for name in ("lock", "failed.log", "6.unfinished/log.txt")]
    for path in [*old, *new, *beside]:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix or path.name == "lock":
            path.write_bytes(b"x")
        else:
            path.mkdir()
            (path / "built").write_bytes(b"x")
        os.utime(path, times=(time.time() - DAY * (path in old),) * 2)
    builds.limit_builds()
    assert [path.exists() for path in old] == [False, False, False, True]
    assert all(path.exists() for path in [*new, *beside])


@pytest.mark.needs("g++")
def test_each_learner_has_a_log_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILD_DIR", str(tmp_path / "build"))
    logs = []
    for name in ("ann", "bob"):
        folder = tmp_path / name
        (folder / "csrc").mkdir(parents=True)
        (folder / "setup.py").write_text(f"raise ValueError('this is of {name}')\n")
        with Work(find("2/bind_a_function"), folder, "host") as work, pytest.raises(failures.BuildFailure):
            work.library()
        logs.append(paths.build_dir() / builds.cache_folder(folder) / "lltm_host" / "failed.log")
    assert ["this is of ann" in logs[0].read_text(), "this is of bob" in logs[1].read_text()] == [True, True]
    builds.remove_builds(tmp_path / "ann")
    assert [log.exists() for log in logs] == [False, True]


def test_a_folder_that_another_removes_meanwhile_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "exercises" / "a" / "b" / "c").mkdir(parents=True)
    scandir = os.scandir

    def vanishing(path="."):
        if str(path).endswith("exercises/a"):
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setenv("BUILD_DIR", str(tmp_path))
    monkeypatch.setattr(os, "scandir", vanishing)
    builds.limit_builds()
