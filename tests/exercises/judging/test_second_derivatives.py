"""The judge finds each second derivative that is silently wrong, also where a refusal is not connected."""

from __future__ import annotations

import pytest
import torch

from common.exercises.failures import Failure
from common.exercises.judging.second_derivatives import right_or_refused
from common.exercises.runner.process import Process
from common.exercises.runner.remote import RemoteModule

# Each class computes tanh(w * x), and saves what its name says.
ANSWER = """
import torch
from torch.autograd.function import once_differentiable


def slopes(x, w):
    slope = 1 - torch.tanh(w * x) ** 2
    return slope * w, slope * x


class Tanh(torch.autograd.Function):
    others = staticmethod(lambda x, w, y: ())

    @classmethod
    def forward(cls, ctx, x, w):
        y = torch.tanh(w * x)
        ctx.save_for_backward(*slopes(x, w), *cls.others(x, w, y))
        return y

    @staticmethod
    def backward(ctx, grad):
        return Refuse.apply(grad, *ctx.saved_tensors)


class Refuse(torch.autograd.Function):
    reason = "once_differentiable"

    @staticmethod
    def forward(ctx, grad, slope_x, slope_w, *others):
        return grad * slope_x, grad * slope_w

    @classmethod
    def backward(cls, ctx, *gradients):
        raise RuntimeError(cls.reason)


class Silent(Refuse):
    reason = "no"


class OfInputs(Tanh):
    others = staticmethod(lambda x, w, y: (x, w))


class OfTheResult(Tanh):
    others = staticmethod(lambda x, w, y: (y,))


class OfOneInput(Tanh):
    others = staticmethod(lambda x, w, y: (x,))


class OfADetachedResult(Tanh):
    others = staticmethod(lambda x, w, y: (y.detach(),))


class Decorated(Tanh):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return tuple(grad * slope for slope in ctx.saved_tensors)


class NotRefused(Tanh):
    @staticmethod
    def backward(ctx, grad):
        return tuple(grad * slope for slope in ctx.saved_tensors)


class WithoutReason(OfInputs):
    @staticmethod
    def backward(ctx, grad):
        return Silent.apply(grad, *ctx.saved_tensors)


class AtOnce(Tanh):
    @staticmethod
    def backward(ctx, grad):
        if torch.is_grad_enabled():
            raise RuntimeError("once_differentiable")
        return tuple(grad * slope for slope in ctx.saved_tensors)


class Right(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.tanh(w * x)

    @staticmethod
    def backward(ctx, grad):
        return tuple(grad * slope for slope in slopes(*ctx.saved_tensors))
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learner")
    (folder / "answer.py").write_text(ANSWER)
    process = Process(folder, 60)
    process.ask("load", library=None)
    yield RemoteModule(lambda: process, "answer")
    process.close()


def judge(answer, name):
    numbers = torch.Generator().manual_seed(0)
    inputs = {one: torch.randn(3, 4, dtype=torch.float64, generator=numbers).requires_grad_() for one in ("x", "w")}
    right_or_refused(getattr(answer, f"{name}.apply"), lambda x, w: torch.tanh(w * x), inputs, "the hint")


@pytest.mark.parametrize("name", ["OfInputs", "OfTheResult", "AtOnce", "Right"])
def test_a_right_derivative_or_a_connected_refusal_passes(answer, name):
    judge(answer, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "Decorated",
            r"torch.autograd.grad\(loss, x\) of a loss that contains the gradient for x returns a number that",
        ),
        (
            "Decorated",
            r"\(4 of 4 such pairs .* not connected with x. .*once_differentiable never connects it. the hint",
        ),
        ("Tanh", r"\(4 of 4 such pairs"),
        ("OfADetachedResult", r"\(4 of 4 such pairs"),
        ("OfOneInput", r"torch.autograd.grad\(loss, w\) .* \(2 of 4 such pairs .* not connected with w"),
        ("NotRefused", "computing a second derivative raises no error, but the result is wrong: .* the hint"),
        ("WithoutReason", "a second derivative raises 'no', which does not say why. the hint"),
    ],
)
def test_a_silently_wrong_derivative_is_found(answer, name, said):
    with pytest.raises(Failure, match=said):
        judge(answer, name)
