"""Second derivatives and gradcheck: what is silently wrong, and who finds it (0.4 and 0.5)."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable

from common import load
from common.primer import autograd

functions = load(0).functions


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


class Cubed(Function):
    """The cube with its slope kept, which backward takes for a constant."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3 * x * x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope


class CubedOnce(Cubed):
    backward = staticmethod(once_differentiable(Cubed.backward))


# 0.4 ----------------------------------------------------------------------------------------------------------


class KeepsSquare(Cubed):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x, square)
        return x * square

    @staticmethod
    def backward(ctx, grad):
        x, square = ctx.saved_tensors
        return grad * (square + x * 2 * x)


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
    assert second(KeepsSquare.apply, torch.sum) == 8
    assert second(lambda x: x**3, torch.sum) == 12


@pytest.mark.syllabus("0.4c")
def test_a_saved_slope_fails_loudly_or_silently():
    with pytest.raises(RuntimeError, match="does not require grad"):
        second(Cubed.apply, torch.sum)
    assert second(Cubed.apply, torch.square) == 288
    assert second(lambda x: x**3, torch.square) == 480


@pytest.mark.syllabus("0.4d")
def test_an_intermediate_that_is_an_output_is_no_constant():
    assert second(functions.cube, torch.sum) == 12
    assert second(functions.cube, torch.square) == 480


@pytest.mark.syllabus("0.4e", "0.5d")
def test_only_gradgradcheck_tells_them_apart():
    x = leaf(0.7, -1.3)
    versions = {functions.cube: True, KeepsSquare.apply: False, Cubed.apply: False}
    assert all(gradcheck(version, x) for version in versions)
    assert [gradgradcheck(version, x, raise_exception=False) for version in versions] == list(versions.values())


@pytest.mark.syllabus("0.4f", "0.4g")
def test_once_differentiable_is_heard_through_backward():
    with pytest.raises(RuntimeError, match="once_differentiable"):
        autograd.second_derivative(CubedOnce.apply, leaf(2.0))
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        second(CubedOnce.apply, torch.square)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        autograd.second_derivative(functions.swish, leaf(2.0))


@pytest.mark.syllabus("0.4g")
def test_autograd_grad_drops_the_refused_term_where_there_is_another_way():
    class MultiplyOnce(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return grad * w, grad * x

    x, w = leaf(3.0), leaf(2.0)
    for multiply, expected in ((torch.mul, 36 + 24), (MultiplyOnce.apply, 36)):
        y = multiply(x, w) ** 2
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        (d_w,) = torch.autograd.grad(y + slope, w, retain_graph=True)
        assert d_w.item() == expected
    with pytest.raises(RuntimeError, match="once_differentiable"):
        (y + slope).backward()


@pytest.mark.syllabus("0.4h")
def test_a_backward_in_numpy_becomes_a_function_of_its_own():
    class Slope(Function):
        @staticmethod
        def forward(ctx, grad, x):
            ctx.save_for_backward(grad, x)
            return torch.from_numpy(grad.numpy() * 3 * x.numpy() ** 2)

        @staticmethod
        def backward(ctx, grad_2):
            grad, x = ctx.saved_tensors
            return grad_2 * 3 * x**2, grad_2 * grad * 6 * x

    class InNumpy(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(x.numpy() ** 3)

        @staticmethod
        def backward(ctx, grad):
            return Slope.apply(grad, *ctx.saved_tensors)

    class Unrecorded(InNumpy):
        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return torch.from_numpy(grad.detach().numpy() * 3 * x.detach().numpy() ** 2)

    x = leaf(0.7, -1.3)
    assert all(gradcheck(kind.apply, x) for kind in (InNumpy, Unrecorded))
    assert gradgradcheck(InNumpy.apply, x)
    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        gradgradcheck(Unrecorded.apply, x)


# 0.5 ----------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.5a")
def test_the_jacobian_of_backward_is_that_of_the_differences():
    x, eps = leaf(0.5, -1.0, 2.0), 1e-6
    steps = eps * torch.eye(3, dtype=torch.float64)
    numerical = torch.stack([(functions.cube(x + s) - functions.cube(x - s)) / (2 * eps) for s in steps], dim=1)
    by_backward = torch.stack([torch.autograd.grad(y, x, retain_graph=True)[0] for y in functions.cube(x)])
    assert torch.allclose(numerical, by_backward, rtol=1e-7, atol=1e-8)
    assert gradcheck(functions.cube, x)

    class Wrong(Cubed):
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
def test_step_and_tolerances():
    x = leaf(1.0)

    class Off(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0].cos() * 1.0001

    assert gradcheck(Off.apply, x)
    assert not gradcheck(Off.apply, x, rtol=1e-6, atol=1e-8, raise_exception=False)
    assert gradcheck(torch.exp, x)
    assert not gradcheck(torch.exp, x, eps=0.1, raise_exception=False)  # too long a step for a curve


@pytest.mark.syllabus("0.5d")
def test_what_gradcheck_cannot_see():
    class Magnitude(Function):
        @staticmethod
        def forward(ctx, x):
            return x.abs()

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert gradcheck(Magnitude.apply, leaf(0.5, 2.0))
    assert not gradcheck(Magnitude.apply, leaf(-0.5), raise_exception=False)

    class InRows(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x.as_strided(x.shape, (x.size(1), 1))

    rows = torch.randn(2, 3, dtype=torch.float64)
    assert gradcheck(InRows.apply, rows.clone().requires_grad_())
    assert not gradcheck(InRows.apply, rows.t().requires_grad_(), raise_exception=False)

    class NamedSine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.cos()

        @staticmethod
        def backward(ctx, grad):
            return -grad * ctx.saved_tensors[0].sin()

    assert gradcheck(NamedSine.apply, leaf(0.3, -0.8))


@pytest.mark.syllabus("0.5e")
def test_gradcheck_refuses_overlap_and_what_varies():
    class Varies(Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            Varies.calls += 1
            return grad * ctx.saved_tensors[0].cos() * (1 + 1e-12 * Varies.calls)

    with pytest.raises(RuntimeError, match="non-overlapping"):
        gradcheck(torch.sin, torch.ones(1, dtype=torch.float64).expand(3).requires_grad_())
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        gradcheck(Varies.apply, leaf(0.5, 1.0))
    assert gradcheck(Varies.apply, leaf(0.5, 1.0), nondet_tol=1e-9)
