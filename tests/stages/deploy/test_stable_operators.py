"""The operators in torch's stable ABI: what the library asks of torch, and what it refuses to compute."""

from __future__ import annotations

import re
import subprocess
import sys

from common import deploy
from support.serving import DEPLOY_MARKS

pytestmark = DEPLOY_MARKS
REFUSED = """
import sys
import torch
torch.ops.load_library(sys.argv[1])
recurrence = getattr(torch.ops, sys.argv[2]).recurrence
x, weights, h, cell = torch.rand(3, 2, 12), torch.rand(12, 4), torch.rand(2, 4), torch.rand(2, 4)
good = [x, weights, None, h, cell, torch.tensor([3, 1]), "lltm", False, "", False]
recurrence(*good)
for place, value in ((0, x.double()), (0, x[0]), (1, weights[:, :3]), (4, None), (5, torch.tensor([3, 4])),
                     (5, torch.tensor([3])), (6, "gru"), (7, True), (9, True)):
    try:
        recurrence(*good[:place], value, *good[place + 1:])
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    else:
        print("accepted", place, value)
"""


def test_the_library_calls_only_c_functions_of_torch():
    listed = subprocess.run(
        ["nm", "-D", "-C", "--undefined-only", deploy.stable_operators()], capture_output=True, text=True, check=True
    ).stdout
    assert "torch_call_dispatcher" in listed
    assert not re.findall(r"(?:at|c10|torch)::\S+", listed)


def test_what_the_library_does_not_compute_is_refused():
    command = [sys.executable, "-c", REFUSED, str(deploy.stable_operators()), deploy.NAMESPACE]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 9
    assert all("lltm: " in line for line in lines), lines
