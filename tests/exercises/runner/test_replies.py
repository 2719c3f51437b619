"""Only replies of the right form reach a check: a learner's code may have written any other."""

from __future__ import annotations

import pytest
import torch

from common.exercises.runner.replies import require_valid

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
