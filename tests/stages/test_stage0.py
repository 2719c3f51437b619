"""Stage 0's fully connected layer (0.6), and `make stage-0`: its checks fail on planted mistakes."""

from __future__ import annotations

import pytest
import torch

from common import load, stages
from common.check import primer
from common.check.primer import autograd
from common.check.primer.checks import Check
from common.commands import tour
from common.errors import UserError
from common.exercises import every

functions, linear = load(0).functions, load(0).linear


# 0.6 ----------------------------------------------------------------------------------------------------------


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


# make stage-0 ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", autograd.CHECKS, ids=lambda check: check.what)
def test_a_check_of_the_primer_passes_and_says_what_it_saw(check):
    assert len(check.run()) > 5


def untold(ctx, x):
    x.exp_()
    ctx.save_for_backward(x)
    return x


def constant_slope(ctx, grad_y, grad_slope):
    return grad_y * ctx.saved_tensors[1]


def ones_for_a_bias(ctx, grad):
    input, weight = ctx.saved_tensors
    return grad.mm(weight), grad.t().mm(input), torch.ones(len(weight), dtype=grad.dtype)


PLANTED = {
    "interp": (functions.Interp, "backward", lambda ctx, grad: (grad, None, None)),
    "swish": (functions.Swish, "backward", lambda ctx, grad: (grad * torch.sigmoid(ctx.saved_tensors[0]), None)),
    "scale": (functions.Scale, "backward", lambda ctx, grad: (grad * ctx.factor, None)),
    "exp_": (functions.Exp, "forward", untold),
    "clip": (functions.Clip, "backward", lambda ctx, grad, _: (grad, None, None)),
    "cube": (functions.Cube, "backward", constant_slope),
    "linear": (linear.LinearFunction, "backward", ones_for_a_bias),
    "Linear": (linear.Linear, "extra_repr", lambda self: ""),
}


@pytest.mark.parametrize("check", autograd.CHECKS, ids=lambda check: check.what)
def test_a_planted_mistake_is_found(check, monkeypatch):
    kind, name, mistake = PLANTED[check.what.partition(":")[0]]
    monkeypatch.setattr(kind, name, mistake if kind is linear.Linear else staticmethod(mistake))
    with pytest.raises((AssertionError, RuntimeError, TypeError)):
        check.run()


def test_the_status_and_the_seed_of_a_failure(monkeypatch, capsys):
    def fails():
        raise AssertionError(f"drew {torch.rand(()).item():.6f}")

    monkeypatch.setattr(autograd, "CHECKS", (Check("a", lambda: "fine"), Check("b", fails), Check("c", fails)))
    monkeypatch.setattr(primer, "PARTS", (autograd,))
    assert tour.run_stage(0, seed=7) == 1
    said = capsys.readouterr().out
    torch.manual_seed(7)
    assert said.count(f"FAILED: drew {torch.rand(()).item():.6f} (seed 7)") == 2
    assert "The stage is wrong. Begin with the first FAILED line" in said
    assert "fine" in said
    monkeypatch.setattr(autograd, "CHECKS", (Check("a", lambda: "fine"),))
    assert tour.run_stage(0) == 0
    assert "Next: `make stage-1`" in capsys.readouterr().out


def test_whatever_the_stage_raises_is_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(autograd, "CHECKS", (Check("a", lambda: 1 / 0),))
    monkeypatch.setattr(primer, "PARTS", (autograd,))
    [result] = primer.check_primer()
    assert (result.stage, result.outcome) == (0, "failed")
    assert result.message.startswith("ZeroDivisionError: division by zero (seed ")


def test_the_primer_is_no_cell():
    assert 0 not in [stage.number for stage in stages.cell_stages()]
    with pytest.raises(UserError, match="stage 0 has no target 'cuda'; it has host"):
        tour.run_stage(0, target="cuda")


def test_a_primer_never_imports_common():
    for path in stages.get_stage(0).folder.glob("*.py"):
        assert "common" not in path.read_text(), path


def test_every_number_is_practised():
    practised = {number for exercise in every() if exercise.stage == 0 for number in exercise.syllabus}
    assert practised >= {f"0.{k}" for k in range(1, 7)}
