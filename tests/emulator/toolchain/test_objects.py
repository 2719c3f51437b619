"""What several builds need at the same time, torch's headers or an object, is compiled once."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

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


def compilers(tmp_path, monkeypatch, status: int):
    """Two threads compile one header with a slow compiler. Returns their results and the number of compiler calls."""
    calls, program = tmp_path / "calls", tmp_path / "c++"
    program.write_text(SLOW.format(calls=calls, status=status))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(program))
    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(objects.compile_header, tmp_path / "kept", "#include <torch>\n", [], None) for _ in range(2)
        ]
    return [one.result() for one in asked], len(calls.read_text().splitlines())


def test_one_compiles_and_the_other_waits(tmp_path, monkeypatch):
    told, calls = compilers(tmp_path, monkeypatch, status=0)
    assert told == [True, True]
    assert calls == 1
    assert (tmp_path / "kept" / "torch.h.gch").read_text() == "firstsecond"


def test_what_fails_leaves_nothing_that_the_compiler_would_take(tmp_path, monkeypatch):
    told, calls = compilers(tmp_path, monkeypatch, status=1)
    assert told == [False, False]
    assert calls == 2
    assert not list((tmp_path / "kept").glob("*.gch"))
    assert not list((tmp_path / "kept").glob("*.unfinished"))


@pytest.mark.parametrize(("status", "expected_calls"), [(0, 1), (1, 2)])
def test_an_object_is_compiled_once(tmp_path, monkeypatch, status, expected_calls):
    calls, program, source = tmp_path / "calls", tmp_path / "c++", tmp_path / "one.cpp"
    program.write_text(SLOW.format(calls=calls, status=status))
    program.chmod(0o755)
    source.write_text("int one;\n")
    job = objects.Job(source, [], tmp_path, "", (str(program),))
    cache, temps = Cache(tmp_path / "cache"), [tmp_path / name for name in "ab"]
    for temp in temps:
        temp.mkdir()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda temp: objects.compile_object(job, [], cache, temp, None), temps))
    assert len(calls.read_text().splitlines()) == expected_calls
    assert [path.read_text() if path else None for path, _ in results] == [None if status else "firstsecond"] * 2
    assert not list(tmp_path.rglob("*.lock"))
