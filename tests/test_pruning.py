"""build/ stays bounded: what was used least recently goes first, and nothing that may be in use."""

from __future__ import annotations

import os
import time

import pytest

from common import build, pruning
from common.exercises import find, judge

DAY = 86400


@pytest.fixture
def kept(tmp_path):
    """Five entries of 100 bytes, files and folders, the first used five days ago, the last one day ago."""
    found = []
    for k in range(5):
        path = tmp_path / f"{k}.o" if k % 2 else tmp_path / f"{k}"
        (path if k % 2 else path / "temp").parent.mkdir(parents=True, exist_ok=True)
        (path if k % 2 else path / "_C.so").write_bytes(b"x" * 100)
        os.utime(path, times=(time.time() - (5 - k) * DAY,) * 2)
        found.append(path)
    return found


def there(kept) -> list[int]:
    return [k for k, path in enumerate(kept) if path.exists()]


@pytest.mark.parametrize(("most", "left"), [(500, [0, 1, 2, 3, 4]), (499, [1, 2, 3, 4]), (250, [3, 4]), (0, [])])
def test_the_least_recently_used_go_first(kept, most, left):
    pruning.prune(kept, most)
    assert there(kept) == left
    assert {path.name for path in kept[0].parent.iterdir()} == {kept[k].name for k in left}


def test_what_was_used_lately_stays(kept):
    for k in (0, 3):
        assert pruning.used(kept[k]) == kept[k]
    pruning.prune(kept, 0)
    assert there(kept) == [0, 3]


def test_what_is_not_there_does_no_harm(kept, tmp_path):
    assert pruning.used(tmp_path / "nothing") == tmp_path / "nothing"
    pruning.prune([*kept, tmp_path / "nothing"], 300)
    assert there(kept) == [2, 3, 4]


def test_what_exercises_leave_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(judge, "MOST", dict.fromkeys(judge.MOST, 0))
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
    judge.prune()
    assert [path.exists() for path in old] == [False, False, False, True]
    assert all(path.exists() for path in [*new, *beside])


@pytest.mark.needs("g++")
def test_each_learner_has_a_log_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "BUILD", tmp_path / "build")
    logs = []
    for name in ("ann", "bob"):
        folder = tmp_path / name
        (folder / "csrc").mkdir(parents=True)
        (folder / "setup.py").write_text(f"raise ValueError('this is of {name}')\n")
        with judge.Work(find("2/bind_a_function"), folder, "host") as work, pytest.raises(judge.BuildFailure):
            work.library()
        logs.append(judge.place_of(folder) / "lltm_host" / "failed.log")
    assert ["this is of ann" in logs[0].read_text(), "this is of bob" in logs[1].read_text()] == [True, True]
    judge.forget(tmp_path / "ann")
    assert [log.exists() for log in logs] == [False, True]


def test_a_folder_that_another_removes_meanwhile_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "exercises" / "a" / "b" / "c").mkdir(parents=True)
    scandir = os.scandir

    def vanishing(path="."):
        if str(path).endswith("exercises/a"):
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(os, "scandir", vanishing)
    judge.prune()
