"""Stage 0's fully connected layer (0.6)."""

from __future__ import annotations

import pytest
import torch

from common import load

linear = load(0).linear


@pytest.mark.syllabus("0.6a")
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("B", "I", "O"), [(3, 5, 4), (1, 1, 1), (0, 4, 2)])
def test_linear_is_torch_s_own(has_bias, B, I, O):
    shapes = [(B, I), (O, I), (O,)][: 2 + has_bias]
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    grad = torch.randn(B, O, dtype=torch.float64)
    found = [torch.autograd.grad(f(*given), given, grad) for f in (linear.linear, torch.nn.functional.linear)]
    for mine, theirs in zip(*found, strict=True):
        assert torch.allclose(mine, theirs)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3, 5), (4, 6), None), r"input has 5 columns, but weight of shape \(4, 6\) calls for 6"),
        (((3, 5), (4, 5), (1,)), r"bias has shape \(1,\), but weight of shape \(4, 5\) calls for \(4,\)"),
        (((5,), (4, 5), None), r"input has shape \(5,\), expected two dimensions"),
        (((3, 5), (5,), None), r"weight has shape \(5,\), expected two dimensions"),
    ],
)
def test_linear_refuses_what_does_not_fit(shapes, message):
    with pytest.raises(RuntimeError, match=f"linear: {message}"):
        linear.linear(*(None if shape is None else torch.randn(shape) for shape in shapes))
    with pytest.raises(RuntimeError, match="linear: weight has dtype"):
        linear.linear(torch.randn(3, 5), torch.randn(4, 5).double())


@pytest.mark.syllabus("0.6c")
def test_a_registered_name_refuses_a_plain_tensor():
    without = linear.Linear(3, 2, bias=False)
    assert without.bias is None
    assert list(without.state_dict()) == ["weight"]
    with pytest.raises(TypeError, match="as parameter 'bias'"):
        without.bias = torch.zeros(2)
    without.bias = torch.nn.Parameter(torch.zeros(2))
    assert "bias" in without.state_dict()


@pytest.mark.syllabus("0.6d")
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_module_starts_in_its_range(has_bias):
    module = linear.Linear(64, 200, bias=has_bias)
    for parameter in module.parameters():
        assert 0.9 / 8 < parameter.abs().max() <= 1 / 8
        assert parameter.min() < 0 < parameter.max()
    assert linear.Linear(0, 2).weight.shape == (2, 0)


@pytest.mark.syllabus("0.6e")
def test_the_module_prints_its_sizes():
    assert str(linear.Linear(3, 4)) == str(torch.nn.Linear(3, 4))
    assert str(linear.Linear(3, 4, bias=False)) == str(torch.nn.Linear(3, 4, bias=False))
