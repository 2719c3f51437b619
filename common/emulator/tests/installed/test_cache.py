"""The user's cache: where it is, and what is removed first."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"EMULATOR_CACHE": "/a/b"}, "/a/b"),
        ({"EMULATOR_CACHE": "~/b", "HOME": "/home/me"}, "/home/me/b"),
        ({"EMULATOR_CACHE": "", "XDG_CACHE_HOME": "/caches"}, "/caches/cuemu"),
        ({"EMULATOR_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/cuemu"),
    ],
)
def test_where_it_is(python, variables, folder):
    done = python("import cuemu; print(cuemu.default_cache().folder)", **variables)
    assert done.stdout == f"{folder}\n", done.stderr


def test_the_least_recently_used_entries_of_each_kind_go_first(python):
    code = """import json, os, time
from pathlib import Path
from cuemu import Cache, prune_cache
cache, old = Cache(Path("cache").resolve()), time.time() - 86400
for k, name in enumerate(["objects/a.o", "objects/b.o", "extensions/toy/k1", "extensions/toy/k2"]):
    path = cache.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix:
        path.write_bytes(b"x" * 100)
    else:
        path.mkdir()
        (path / "toy.so").write_bytes(b"x" * 100)
    os.utime(path, (old + k, old + k))
(cache.folder / "extensions" / "toy" / "lock").touch()
cache.find("objects", "a.o")  # used now
prune_cache(cache, {"objects/*": 100, "extensions/*/*": 100})
print(json.dumps(sorted(str(path.relative_to(cache.folder)) for path in cache.folder.rglob("*"))))"""
    done = python(code)
    assert json.loads(done.stdout) == [
        "extensions", "extensions/toy", "extensions/toy/k2", "extensions/toy/k2/toy.so", "extensions/toy/lock",
        "objects", "objects/a.o",
    ], done.stderr  # fmt: skip


def test_importing_the_package_imports_no_torch(python):
    done = python("import sys, cuemu; print('torch' in sys.modules, set(cuemu.__all__) <= set(dir(cuemu)))")
    assert done.stdout == "False True\n", done.stderr
