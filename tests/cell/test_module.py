"""The nn.Module around the cell, and the loop over time."""

from __future__ import annotations

import math

import pytest
import torch

from common import load, stages
from common.build import targets
from common.build.cell_module import LLTM, lltm_sequence

CELLS = [
    pytest.param(stage.number, marks=pytest.mark.needs("g++") if targets.has_cpp(stage) else ())
    for stage in stages.cell_stages()
    if "host" in stage.targets
]


@pytest.mark.syllabus("1.1d")
def test_parameters_have_their_shapes_and_bounds():
    module = LLTM(7, 400)
    assert module.weights.shape == (1200, 407)
    assert module.bias.shape == (1200,)
    bound = 1 / math.sqrt(400)
    for parameter in module.parameters():
        assert parameter.abs().max() <= bound
        assert parameter.min() < -0.95 * bound
        assert parameter.max() > 0.95 * bound
        assert abs(parameter.mean()) < 0.1 * bound
    assert str(module) == "LLTM(input_features=7, state_size=400)"


@pytest.mark.parametrize("number", CELLS)
def test_trains_with_any_stage(number):
    torch.manual_seed(0)
    module = LLTM(3, 4, lltm=load(number).lltm)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
    inputs, wanted = torch.randn(3, 4, 3), torch.randn(4, 4).tanh()
    zeros = torch.zeros(4, 4)
    losses = []
    for _ in range(60):
        _, (h, _) = lltm_sequence(module.lltm, inputs, module.weights, module.bias, zeros, zeros)
        losses.append((h - wanted).square().mean())
        optimiser.zero_grad()
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("number", CELLS)
def test_a_sequence_is_its_steps(number):
    lltm = load(number).lltm
    T, B, I, S = 4, 3, 5, 7
    inputs = torch.randn(T, B, I, dtype=torch.float64)
    module = LLTM(I, S).double()
    h, cell = torch.randn(2, B, S, dtype=torch.float64)
    outputs, last = lltm_sequence(lltm, inputs, module.weights, module.bias, h, cell)
    assert outputs.shape == (T, B, S)
    for t in range(T):
        h, cell = module(inputs[t], (h, cell))
        torch.testing.assert_close(outputs[t], h)
    torch.testing.assert_close(last, (h, cell))


@pytest.mark.syllabus("1.1c")
def test_the_cell_never_forgets():
    """Through the cell alone, with h held fixed, the derivative over any number of steps is exactly one."""
    module = LLTM(2, 3).double()
    first = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
    h, cell = torch.zeros(1, 3, dtype=torch.float64), first
    for _ in range(100):
        h, cell = module(torch.randn(1, 2, dtype=torch.float64), (h.detach(), cell))
    (derivative,) = torch.autograd.grad(cell.sum(), first)
    assert torch.equal(derivative, torch.ones_like(derivative))


@pytest.mark.syllabus("1.1e")
def test_chunk_without_dim_cuts_the_batch():
    z = torch.randn(6, 9)
    assert [tuple(part.shape) for part in z.chunk(3, dim=1)] == [(6, 3)] * 3
    assert [tuple(part.shape) for part in z.chunk(3)] == [(2, 9)] * 3
