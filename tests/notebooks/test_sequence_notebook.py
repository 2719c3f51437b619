"""What notebook 07 says of a missing barrier, a wrong parity, and the gradient of the recurrent weights."""

from __future__ import annotations

import pytest
import torch

from common import load
from support.labs import definitions, texts
from support.proofs.files import notebook_files, stage_files

pytestmark = [
    pytest.mark.proof("claims of notebooks", files=[*notebook_files("07_sequence"), *stage_files()]),
    pytest.mark.needs("g++"),
]


@pytest.mark.syllabus("7.1d")
@pytest.mark.parametrize("macro", [None, "NO_BARRIER", "WRONG_PARITY"])
def test_the_emulator_reports_steps_that_are_not_kept_apart(macro):
    macros = [macro] if macro else []
    report = definitions("07_sequence").emulate(texts("07_sequence")["PROGRAM"], *macros)
    if macro:
        assert "race on element" in report, report
        assert "of h" in report
    else:
        assert "h[0] after 3 steps: 3" in report
        assert "no problem found" in report


@pytest.mark.syllabus("7.2d")
def test_the_gradient_of_the_recurrent_weights_is_one_product():
    torch.manual_seed(0)
    T, B, S = 6, 3, 5
    weight_hh = torch.randn(4 * S, S, dtype=torch.float64, requires_grad=True)
    x = torch.randn(T, B, 4 * S, dtype=torch.float64, requires_grad=True)
    start, identity = torch.zeros(B, S, dtype=torch.float64), torch.eye(4 * S, dtype=torch.float64)
    outputs, _ = load(7, "host").lstm_sequence(x, identity, weight_hh, None, None, start, start)
    d_z, d_weights = torch.autograd.grad(outputs, [x, weight_hh], torch.randn_like(outputs))
    h_before = torch.cat([start[None], outputs[:-1]]).detach()
    torch.testing.assert_close(d_z.flatten(0, 1).T @ h_before.flatten(0, 1), d_weights)
