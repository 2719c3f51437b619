"""Only replies of the right form reach a check: a learner's code may have written any other."""

from __future__ import annotations

import pytest
import torch

from common.exercises.runner import wire
from common.exercises.runner.replies import require_valid
from support.exercises import learner

CALL = {"value": None, "graph": None, "changed": [], "same": []}
ERROR = {"kind": "ValueError", "message": "too small", "where": [["answer.py", 3, "x"], ["answer.py", None, None]]}
VALID = [
    ("load", {"answer": None}),
    ("names", {"answer": ["double"]}),
    ("doc", {"answer": "double(x)"}),
    ("call", {"answer": CALL | {"value": torch.ones(1), "graph": 1, "changed": [0], "same": [None, 0]}}),
    ("backward", {"answer": [None, torch.ones(1)]}),
    ("counted", {"answer": {"calls": {"add": 1}, "saved": 8, "kernels": None}}),
    ("call", {"error": ERROR}),
]
FORGED = [
    ("call", None),
    ("call", []),
    ("call", {}),
    ("call", {"answer": CALL, "error": ERROR}),
    ("call", {"answer": True}),
    ("call", {"answer": CALL | {"changed": None}}),
    ("call", {"answer": CALL | {"same": ["0"]}}),
    ("call", {"answer": CALL | {"graph": "1"}}),
    ("backward", {"answer": torch.ones(1)}),
    ("counted", {"answer": {"calls": {"add": "1"}, "saved": 8, "kernels": None}}),
    ("counted", {"answer": {"calls": {}, "saved": None, "kernels": None}}),
    ("names", {"answer": "double"}),
    ("call", {"error": None}),
    ("call", {"error": {"kind": "ValueError"}}),
    ("call", {"error": ERROR | {"kind": 1}}),
    ("call", {"error": ERROR | {"where": [["answer.py"]]}}),
    ("call", {"error": ERROR | {"where": [[1, 2, 3]]}}),
    ("call", {"error": ERROR | {"where": 3}}),
]


@pytest.mark.parametrize(("do", "reply"), VALID)
def test_what_learner_py_writes_is_accepted(do, reply):
    require_valid(do, reply)


@pytest.mark.parametrize(("do", "reply"), FORGED)
def test_another_form_is_not(do, reply):
    with pytest.raises(ValueError, match=r"repl|neither"):
        require_valid(do, reply)


ANSWERS_ITSELF = """import contextlib, json, os, struct

def number():
    call = {"dict": [["value", 42], ["graph", None], ["changed", []], ["same", []]]}
    text = json.dumps({"value": {"dict": [["answer", call]]}, "tensors": []}).encode()
    for file in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(file, b"x" * 32 + struct.pack("<QQ", len(text), 0) + text)
    return 41
"""


def test_a_reply_without_the_nonce_is_not_read(tmp_path, monkeypatch):
    """The learner's code writes a reply in the right form, with 32 bytes of its own where the nonce belongs."""
    read, unpack = [], wire.unpack
    monkeypatch.setattr(wire, "unpack", lambda reply: read.append(unpack(reply)) or read[-1])
    verdict = learner.checked(learner.read(tmp_path / "exercises"), tmp_path / "work", ANSWERS_ITSELF)
    assert not verdict.passed
    assert "the check's pipe" in verdict.message
    assert "42" not in str(read)
