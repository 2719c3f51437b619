"""Second derivatives and gradcheck: what is silently wrong, and who finds it (0.4 and 0.5)."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from common import load
from common.check.primer import autograd
from common.check.primer.checks import refuses_second_derivatives
from support.labs import definitions

functions = load(0).functions
shown, checked = definitions("00b_second_derivatives"), definitions("00c_gradcheck")
SAVED = "slope", "slope and x", "slope and result"


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# 0.4 ----------------------------------------------------------------------------------------------------------


def second(function, after) -> float:
    """The second derivative of after(function(x)) at 2, by autograd.grad."""
    x = leaf(2.0)
    (first,) = torch.autograd.grad(after(function(x)), x, create_graph=True)
    return torch.autograd.grad(first, x)[0].item()


@pytest.mark.syllabus("0.4a")
def test_a_backward_of_differentiable_operations_is_differentiated():
    x = leaf(2.0)
    (without,) = torch.autograd.grad(functions.cube(x), x)
    (recorded,) = torch.autograd.grad(functions.cube(x), x, create_graph=True)
    assert not without.requires_grad
    assert recorded.requires_grad
    assert second(lambda x: functions.scale(x, 3.0) ** 2, torch.sum) == 18


@pytest.mark.syllabus("0.4b")
def test_a_saved_intermediate_is_a_constant():
    assert second(shown.CubeKeepsSquare.apply, torch.sum) == 8
    assert second(lambda x: x**3, torch.sum) == 12


@pytest.mark.syllabus("0.4c")
def test_a_saved_slope_fails_loudly_or_silently():
    with pytest.raises(RuntimeError, match="does not require grad"):
        second(shown.CubeKeepsSlope.apply, torch.sum)
    assert second(shown.CubeKeepsSlope.apply, torch.square) == 288
    assert second(lambda x: x**3, torch.square) == 480


@pytest.mark.syllabus("0.4d")
def test_an_intermediate_that_is_an_output_is_no_constant():
    assert second(functions.cube, torch.sum) == 12
    assert second(functions.cube, torch.square) == 480


@pytest.mark.syllabus("0.4e", "0.5d")
def test_only_gradgradcheck_tells_them_apart():
    x = leaf(0.7, -1.3)
    versions = {functions.cube: True, shown.CubeKeepsSquare.apply: False, shown.CubeKeepsSlope.apply: False}
    assert all(gradcheck(version, x) for version in versions)
    assert [gradgradcheck(version, x, raise_exception=False) for version in versions] == list(versions.values())


@pytest.mark.syllabus("0.4f", "0.4g")
def test_once_differentiable_is_heard_through_backward():
    with pytest.raises(RuntimeError, match="once_differentiable"):
        autograd.second_derivative(shown.CubeOnce.apply, leaf(2.0))
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        second(shown.CubeOnce.apply, torch.square)


@pytest.mark.syllabus("0.4g")
def test_autograd_grad_drops_the_refused_term_where_there_is_another_way():
    x, w = leaf(3.0), leaf(2.0)
    for multiply, expected in ((torch.mul, 36 + 24), (shown.MultiplyOnce.apply, 36)):
        loss = shown.penalised(multiply, x, w)
        (d_w,) = torch.autograd.grad(loss, w, retain_graph=True)
        assert d_w.item() == expected
    with pytest.raises(RuntimeError, match="once_differentiable"):
        loss.backward()


@pytest.mark.syllabus("0.4i")
def test_an_error_in_a_second_function_reaches_every_caller():
    x, w = leaf(3.0), leaf(2.0)
    for ask in (torch.Tensor.backward, lambda loss: torch.autograd.grad(loss, [w], allow_unused=True)):
        with pytest.raises(RuntimeError, match="multiply: there are no second derivatives"):
            ask(shown.penalised(shown.MultiplyRefuses.apply, x, w))
    refuses_second_derivatives("swish", functions.swish, leaf(2.0))


@pytest.mark.syllabus("0.4j")
def test_a_saved_intermediate_connects_nothing():
    with_slope = {what: lambda x, what=what: shown.CubeSaves.apply(x, what) for what in SAVED}
    assert shown.derivative_of_sum(with_slope["slope"]) == 12, "the part 6x is missing"
    for what in ("slope and x", "slope and result"):
        with pytest.raises(RuntimeError, match="cube: there are no second derivatives"):
            shown.derivative_of_sum(with_slope[what])
    assert shown.derivative_of_sum(shown.cube) == 24


@pytest.mark.syllabus("0.4h")
def test_a_backward_in_numpy_becomes_a_function_of_its_own():
    class Unrecorded(shown.NumpyCube):
        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return torch.from_numpy(grad.detach().numpy() * 3 * x.detach().numpy() ** 2)

    x = leaf(0.7, -1.3)
    assert all(gradcheck(kind.apply, x) for kind in (shown.NumpyCube, Unrecorded))
    assert gradgradcheck(shown.NumpyCube.apply, x)
    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        gradgradcheck(Unrecorded.apply, x)


# 0.5 ----------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.5a")
def test_the_jacobian_of_backward_is_that_of_the_differences():
    x = leaf(0.5, -1.0, 2.0)
    numerical = checked.numerical_jacobian(functions.cube, x, 1e-6)
    by_backward = checked.jacobian_of_backward(functions.cube, x)
    assert torch.allclose(numerical, by_backward, rtol=1e-7, atol=1e-8)
    assert gradcheck(functions.cube, x)

    class Wrong(shown.CubeKeepsSlope):
        @staticmethod
        def backward(ctx, grad):
            return 1.01 * grad * ctx.saved_tensors[0]

    assert not gradcheck(Wrong.apply, x, raise_exception=False)


@pytest.mark.syllabus("0.5b")
@pytest.mark.filterwarnings("ignore:.*double precision")
def test_right_gradients_fail_in_float32():
    x = torch.tensor([0.7, 1.3, -2.1], requires_grad=True)
    assert not gradcheck(torch.sin, x, raise_exception=False)
    assert gradcheck(torch.sin, x.detach().double().requires_grad_())


@pytest.mark.syllabus("0.5c")
def test_step_and_tolerances(monkeypatch):
    x = leaf(1.0)
    monkeypatch.setattr(checked.SinOff, "factor", 1.0001)
    assert gradcheck(checked.SinOff.apply, x)
    assert not gradcheck(checked.SinOff.apply, x, rtol=1e-6, atol=1e-8, raise_exception=False)
    assert gradcheck(torch.exp, x)
    assert not gradcheck(torch.exp, x, eps=0.1, raise_exception=False)  # too long a step for a curve


@pytest.mark.syllabus("0.5d")
def test_what_gradcheck_cannot_see():
    assert gradcheck(checked.AbsForPositive.apply, leaf(0.5, 2.0))
    assert not gradcheck(checked.AbsForPositive.apply, leaf(-0.5), raise_exception=False)

    rows = torch.randn(2, 3, dtype=torch.float64)
    assert gradcheck(checked.SquareInRows.apply, rows.clone().requires_grad_())
    assert not gradcheck(checked.SquareInRows.apply, rows.t().requires_grad_(), raise_exception=False)

    assert gradcheck(checked.Sine.apply, leaf(0.3, -0.8))


@pytest.mark.syllabus("0.5e")
def test_gradcheck_refuses_overlap_and_what_varies():
    with pytest.raises(RuntimeError, match="non-overlapping"):
        gradcheck(torch.sin, torch.ones(1, dtype=torch.float64).expand(3).requires_grad_())
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        gradcheck(checked.SinVaries.apply, leaf(0.5, 1.0))
    assert gradcheck(checked.SinVaries.apply, leaf(0.5, 1.0), nondet_tol=1e-9)
