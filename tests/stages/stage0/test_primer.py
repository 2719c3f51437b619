"""`make stage-0`: the checks of the primer pass, and fail on planted mistakes."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.function import once_differentiable

from common import load, stages
from common.check import primer
from common.check.lines import Check
from common.check.primer import autograd
from common.commands import tour
from common.errors import UserError
from common.exercises import every

functions, linear = load(0).functions, load(0).linear


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


def unconnected(ctx, grad):
    return functions.SwishBackward.forward(None, grad, *ctx.saved_tensors, ctx.beta), None


PLANTED = {
    "interp": (functions.Interp, "backward", lambda ctx, grad: (grad, None, None)),
    "swish": (functions.Swish, "backward", once_differentiable(unconnected)),
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
