"""Builds are looked for in one's own folder first, then in those that are shared; only one's own is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common import build, cache, objects
from common.stages import ROOT


@pytest.fixture
def folders(tmp_path, monkeypatch) -> tuple[Path, Path]:
    own, shared = tmp_path / "own", tmp_path / "shared"
    monkeypatch.setattr(cache, "BUILD", own)
    monkeypatch.setattr(cache, "SHARED", [shared])
    return own, shared


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_ones_own_comes_first_then_what_is_shared(folders):
    own, shared = folders
    assert cache.kept(own / "objects" / "a.o") == own / "objects" / "a.o"
    touch(shared / "objects" / "a.o")
    assert cache.kept(own / "objects" / "a.o") == shared / "objects" / "a.o"
    touch(own / "objects" / "a.o")
    assert cache.kept(own / "objects" / "a.o") == own / "objects" / "a.o"
    assert cache.kept(Path("/elsewhere/a.o")) == Path("/elsewhere/a.o")


@pytest.mark.needs("g++")
def test_an_object_that_is_shared_is_not_compiled_again(folders, tmp_path):
    own, shared = folders
    (tmp_path / "temp").mkdir()
    source = tmp_path / "one.cpp"
    source.write_text("int one() { return 1; }\n")
    job = objects.Job(source, ["-O1"], tmp_path)
    made, _ = objects.compiled(job, [], shared / "objects", tmp_path / "temp", None)
    assert objects.compiled(job, [], own / "objects", tmp_path / "temp", None) == (made, "")
    source.write_text("int one() { return 2; }\n")
    edited, _ = objects.compiled(job, [], own / "objects", tmp_path / "temp", None)
    assert edited.is_relative_to(own)


def where(**variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from common import cache; print(cache.BUILD, *cache.SHARED)"],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_variables_say_where():
    assert where(BUILD_DIR="/tmp/mine", SHARED_BUILD_DIRS="/a:/b") == f"/tmp/mine /a /b {ROOT / 'build'}"


def test_where_the_workbook_cannot_be_written_builds_go_to_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("BUILD_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache.os, "access", lambda *_: False)
    assert cache.own() == tmp_path / "lltm-workbook"
    monkeypatch.setattr(cache.os, "access", lambda *_: True)
    assert cache.own() == ROOT / "build"


def test_all_commands_build_in_the_same_folder():
    assert cache.BUILD == build.BUILD
