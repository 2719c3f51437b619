"""`make start`: the first notebook, in a browser or as text."""

from __future__ import annotations

import re
import subprocess
import textwrap

import pytest

from common.errors import UserError
from common.lab import start
from common.paths import ROOT
from support.proofs.files import notebook_files

README = ROOT / "README.md"


@pytest.fixture
def no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The reader's copy of the code."""
    monkeypatch.setenv("WORK", str(tmp_path / "work"))
    return tmp_path / "work" / "start_here.py"


@pytest.mark.proof("notebooks", files=[*notebook_files("start_here"), "README.md"])
@pytest.mark.needs("g++", "matplotlib")
def test_the_whole_of_it_as_text(no_display, capsys, copy):
    assert start.start() == 0
    shown = capsys.readouterr().out
    assert "the same as x * x: True" in shown
    assert textwrap.indent(re.search(r"```\n(error: .*?)```", README.read_text(), re.DOTALL)[1], "  ") in shown
    assert "the gradient is 2x: True" in shown
    assert re.search(r"stage 6: The fused cell +#+ \d\.\d\d", shown)
    assert "Shift+Enter" not in shown
    assert "sys.path" not in shown
    assert (ROOT / "out" / "start" / "threads.png").stat().st_size > 1000


@pytest.mark.proof("notebooks", files=notebook_files("start_here"))
@pytest.mark.needs("g++", "matplotlib")
def test_the_reader_corrects_the_mistake_in_a_copy(copy):
    task = start.describe_task(start.SOURCE)
    command = re.search(r"^    (.+)$", task, re.MULTILINE)[1].split()

    def run() -> str:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "error: reads past the end of x" in run()
    text = copy.read_text()
    assert text.count("(i <= n)") == 1
    copy.write_text(text.replace("(i <= n)", "(i < n)"))
    assert start.describe_task(start.SOURCE) == task  # and the reader's copy stays
    assert "error" not in (fixed := run())
    assert fixed.count("the same as x * x: True") == 2


def test_every_command_that_it_names_exists():
    from common.commands.table import COMMANDS

    named = re.findall(r"`make (\w+)", start.SOURCE.read_text())
    assert len(named) >= 5
    assert set(named) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("variables", "browser", "expected"),
    [
        ({}, True, False),
        ({"DISPLAY": ":0"}, True, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True, True),
        ({"DISPLAY": ":0"}, False, False),
        ({"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}, True, False),
    ],
)
def test_a_browser_needs_a_display_here(no_display, monkeypatch, variables, browser, expected):
    def get():
        if not browser:
            raise start.webbrowser.Error("could not locate runnable browser")

    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(start.webbrowser, "get", get)
    assert start.can_open_browser() is expected


def test_with_a_browser_it_is_a_notebook(monkeypatch):
    opened = []
    monkeypatch.setattr(start, "can_open_browser", lambda: True)
    monkeypatch.setattr(start.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(start, "open_lab", lambda name: opened.append(name) or 0)
    monkeypatch.setattr(start, "play", lambda source: opened.append("text"))
    assert start.start() == 0
    assert start.start(as_text=True) == 0
    assert opened == ["start_here.ipynb", "text"]


def test_without_a_compiler_it_says_what_is_missing(no_display, monkeypatch):
    from common.build import targets

    reason = "no C++ compiler; `make doctor` says what to install"
    monkeypatch.setattr(targets, "why_unavailable", lambda target: reason)
    with pytest.raises(UserError, match="cannot build first_kernel: no C\\+\\+ compiler"):
        start.start(as_text=True)
