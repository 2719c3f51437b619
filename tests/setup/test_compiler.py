"""A compiler that links its own C++ library is noticed before anything is built."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.commands import table
from common.errors import UserError
from common.setup import compiler

pytestmark = pytest.mark.needs("g++")


@pytest.fixture
def static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """CXX is a g++ that links its C++ library statically."""
    found = program(tmp_path / "static-g++", 'exec g++ -static-libstdc++ "$@"')
    monkeypatch.setenv("CC", "gcc")
    monkeypatch.setenv("CXX", str(found))
    return found


def program(path: Path, script: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_an_ordinary_compiler_is_kept(monkeypatch):
    monkeypatch.setenv("CXX", "g++ -O1")
    assert compiler.choose_compiler() == ""
    assert os.environ["CXX"] == "g++ -O1"


def test_another_compiler_on_path_is_used_and_named(static):
    note = compiler.choose_compiler()
    assert "\n" not in note
    assert note.startswith(f"note: {static} links its own C++ library into each extension")
    assert note.endswith("this command uses g++. To choose it: export CC=gcc CXX=g++")
    assert (os.environ["CC"], os.environ["CXX"]) == ("gcc", "g++")
    assert compiler.choose_compiler() == ""


def test_without_another_one_a_line_says_what_to_install(static, tmp_path, monkeypatch):
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for name in compiler.CANDIDATES:
        program(tmp_path / "bin" / name, f'exec {static} "$@"')
    program(static, 'PATH="${PATH#*:}" exec g++ -static-libstdc++ "$@"')
    monkeypatch.setenv("PATH", path)
    with pytest.raises(UserError, match=r"^the compiler .* and there is no other on PATH: sudo apt install g\+\+$"):
        compiler.choose_compiler()


@pytest.mark.parametrize(("builds", "said"), [(True, "this command uses g++"), (False, "")])
def test_a_command_that_builds_asks_first(static, capsys, monkeypatch, builds, said):
    command = table.Command("try", "", "errors:run", builds=builds)
    monkeypatch.setattr("common.errors.run", lambda: 0, raising=False)
    assert table.run_command(command, {}) == 0
    assert said in capsys.readouterr().out
    assert os.environ["CXX"] == ("g++" if builds else str(static))


def test_the_readme_s_commands_ask():
    assert {"tour", "start", "stage", "check"} <= {one.name for one in table.COMMANDS.values() if one.builds}
