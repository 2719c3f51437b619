"""Torch's headers are compiled once, even if several builds need them at the same time."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

from common.emulator.toolchain import objects

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
