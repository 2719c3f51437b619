"""The load of stage 8's server: it passes on the real server, and says when an answer or the memory is wrong."""

from __future__ import annotations

import itertools
import os
import signal

import pytest

from common.studies.serving import load
from support.serving import DEPLOY_MARKS

pytestmark = DEPLOY_MARKS
MINUTES = 0.05


def test_the_server_holds_the_load(capsys):
    assert load.hold_load(MINUTES, slow=50) == 0
    assert "right answers; memory" in capsys.readouterr().out


def test_a_wrong_answer_is_found(capsys, monkeypatch):
    monkeypatch.setattr(load, "TOLERANCE", -1.0)
    assert load.hold_load(MINUTES, slow=0) == 1
    assert "client 0: a score differs from Python's by" in capsys.readouterr().out


def test_memory_that_grows_is_found(capsys, monkeypatch):
    sizes = itertools.count(100.0, 20.0)
    monkeypatch.setattr(load, "resident_mib", lambda pid: next(sizes))
    assert load.hold_load(MINUTES, slow=0) == 1
    assert "the memory grows" in capsys.readouterr().out


@pytest.mark.parametrize("slow", [0, 20])
def test_a_server_that_dies_is_found(slow, capsys, monkeypatch):
    def kill(pid: int) -> float:
        os.kill(pid, signal.SIGKILL)
        return 0.0

    monkeypatch.setattr(load, "resident_mib", kill)
    assert load.hold_load(MINUTES, slow) == 1
    assert "client 0: " in capsys.readouterr().out
