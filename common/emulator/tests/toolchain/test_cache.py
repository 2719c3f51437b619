"""The build cache: it looks in the user's own folder, then in shared ones, and removes the oldest entries first."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common import paths
from common.emulator.toolchain import cache, objects
from common.emulator.toolchain.cache import Cache
from common.paths import ROOT

DAY = 86400


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    return tmp_path / "own", tmp_path / "shared"


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_ones_own_comes_first_then_what_is_shared(folders):
    own, shared = folders
    both = Cache(own, (shared,))
    assert both.find("objects", "a.o") == own / "objects" / "a.o"
    touch(shared / "objects" / "a.o")
    assert both.find("objects", "a.o") == shared / "objects" / "a.o"
    touch(own / "objects" / "a.o")
    assert both.find("objects", "a.o") == own / "objects" / "a.o"


def test_a_shared_folder_that_cannot_be_read_is_passed_over(tmp_path):
    class Unreadable(type(tmp_path)):
        def exists(self, **options):
            raise PermissionError

    (tmp_path / "shared" / "entry").mkdir(parents=True)
    cache = Cache(tmp_path / "mine", (Unreadable("/theirs"), tmp_path / "shared"))
    assert cache.find("entry") == tmp_path / "shared" / "entry"
    assert cache.find("another") == tmp_path / "mine" / "another"


@pytest.mark.needs("g++")
def test_an_object_that_is_shared_is_not_compiled_again(folders, tmp_path):
    own, shared = folders
    both = Cache(own, (shared,))
    (tmp_path / "temp").mkdir()
    source = tmp_path / "one.cpp"
    source.write_text("int one() { return 1; }\n")
    job = objects.Job(source, ["-O1"], tmp_path)
    made, _ = objects.compile_object(job, [], Cache(shared), tmp_path / "temp", None)
    assert objects.compile_object(job, [], both, tmp_path / "temp", None) == (made, "")
    source.write_text("int one() { return 2; }\n")
    edited, _ = objects.compile_object(job, [], both, tmp_path / "temp", None)
    assert edited.is_relative_to(own)


def where(**variables: str) -> str:
    code = "from common.paths import build_cache; print(build_cache().folder, *build_cache().shared)"
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_variables_say_where():
    assert where(BUILD_DIR="/tmp/mine", SHARED_BUILD_DIRS="/a:/b") == "/tmp/mine /a /b"
    assert where(BUILD_DIR="/tmp/mine") == f"/tmp/mine {ROOT / 'build'}"


def test_where_the_workbook_cannot_be_written_builds_go_to_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("BUILD_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(paths.os, "access", lambda *_: False)
    assert paths.build_dir() == tmp_path / "lltm-workbook"
    monkeypatch.setattr(paths.os, "access", lambda *_: True)
    assert paths.build_dir() == ROOT / "build"


@pytest.fixture
def entries(tmp_path):
    """Five entries of 100 bytes, files and folders. The first was used five days ago, the last one day ago."""
    found = []
    for k in range(5):
        path = tmp_path / f"{k}.o" if k % 2 else tmp_path / f"{k}"
        (path if k % 2 else path / "temp").parent.mkdir(parents=True, exist_ok=True)
        (path if k % 2 else path / "_C.so").write_bytes(b"x" * 100)
        os.utime(path, times=(time.time() - (5 - k) * DAY,) * 2)
        found.append(path)
    return found


def left(entries) -> list[int]:
    return [k for k, path in enumerate(entries) if path.exists()]


@pytest.mark.parametrize(("most", "stay"), [(500, [0, 1, 2, 3, 4]), (499, [1, 2, 3, 4]), (250, [3, 4]), (0, [])])
def test_the_least_recently_used_go_first(entries, most, stay):
    cache.prune(entries, most)
    assert left(entries) == stay
    assert {path.name for path in entries[0].parent.iterdir()} == {entries[k].name for k in stay}


def test_what_was_used_lately_stays(entries, tmp_path):
    for k in (0, 3):
        assert Cache(tmp_path).find(entries[k].name) == entries[k]
    cache.prune(entries, 0)
    assert left(entries) == [0, 3]


def test_what_is_not_there_does_no_harm(entries, tmp_path):
    assert Cache(tmp_path).find("nothing") == tmp_path / "nothing"
    cache.prune([*entries, tmp_path / "nothing"], 300)
    assert left(entries) == [2, 3, 4]
