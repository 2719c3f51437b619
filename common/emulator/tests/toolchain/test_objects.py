"""Objects and torch's headers are compiled once, even if several builds need them at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common.emulator.toolchain import objects
from common.emulator.toolchain.cache import Cache

# A compiler that records each call and writes its result in two halves.
SLOW = """#!/bin/sh
echo called >> {calls}
for last; do :; done
printf first > "$last"
sleep 0.3
printf second >> "$last"
exit {status}
"""


@pytest.fixture
def slow_compiler(tmp_path) -> Callable[[int], Path]:
    """Makes the compiler, given its exit status."""

    def make(status: int) -> Path:
        program = tmp_path / "c++"
        program.write_text(SLOW.format(calls=tmp_path / "calls", status=status))
        program.chmod(0o755)
        return program

    return make


def count_calls(tmp_path: Path) -> int:
    return len((tmp_path / "calls").read_text().splitlines())


def compile_header_twice(tmp_path: Path) -> list[bool]:
    """What two threads are told that compile one header."""
    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(objects.compile_header, tmp_path / "kept", "#include <torch>\n", [], None) for _ in range(2)
        ]
    return [one.result() for one in asked]


def test_one_compiles_and_the_other_waits(tmp_path, monkeypatch, slow_compiler):
    monkeypatch.setenv("CXX", str(slow_compiler(0)))
    assert compile_header_twice(tmp_path) == [True, True]
    assert count_calls(tmp_path) == 1
    assert (tmp_path / "kept" / "torch.h.gch").read_text() == "firstsecond"


def test_what_fails_leaves_nothing_that_the_compiler_would_take(tmp_path, monkeypatch, slow_compiler):
    monkeypatch.setenv("CXX", str(slow_compiler(1)))
    assert compile_header_twice(tmp_path) == [False, False]
    assert count_calls(tmp_path) == 2
    assert not list((tmp_path / "kept").glob("*.gch"))
    assert not list((tmp_path / "kept").glob("*.unfinished"))


@pytest.mark.parametrize(("status", "expected_calls"), [(0, 1), (1, 2)])
def test_an_object_is_compiled_once(tmp_path, slow_compiler, status, expected_calls):
    source = tmp_path / "one.cpp"
    source.write_text("int one;\n")
    job = objects.Job(source, [], tmp_path, "", (str(slow_compiler(status)),))
    cache, temps = Cache(tmp_path / "cache"), [tmp_path / name for name in "ab"]
    for temp in temps:
        temp.mkdir()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda temp: objects.compile_object(job, [], cache, temp, None), temps))
    assert count_calls(tmp_path) == expected_calls
    assert [path.read_text() if path else None for path, _ in results] == [None if status else "firstsecond"] * 2
    assert not list(tmp_path.rglob("*.lock"))
