"""The assertions that the parts of the primer's checks share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck


def leaf(*shape: int) -> Tensor:
    """New random numbers in float64 that require a gradient."""
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def agrees(name: str, got: Tensor, want: Tensor) -> None:
    """Raises AssertionError unless two tensors are equal up to rounding; NaN is never equal."""
    assert got.shape == want.shape, f"{name} has shape {tuple(got.shape)}, expected {tuple(want.shape)}"
    assert torch.allclose(got, want), f"{name} is off by up to {(got - want).abs().max():.1e}"


def passes(name: str, function: Callable, *arguments: object, twice: bool = False) -> None:
    """Raises AssertionError, with the first line of gradcheck's message, unless the gradients are right.

    With `twice`, it checks the second derivatives, too.
    """
    for test in (gradcheck, gradgradcheck) if twice else (gradcheck,):
        try:
            test(function, arguments)
        except RuntimeError as error:  # gradcheck's GradcheckError is one
            said = str(error).strip().splitlines()[0].rstrip(",")
            raise AssertionError(f"{name} fails {test.__name__}: {said}") from None


def refuses(
    what: str, call: Callable[[], object], word: str, kinds: tuple[type[Exception], ...] = (RuntimeError,)
) -> None:
    """Raises AssertionError unless a call raises an exception of these kinds with that word in its message."""
    try:
        found = call()
    except kinds as error:
        assert word in str(error), f"{what} is refused, but the message does not say {word!r}: {error}"
        return
    raise AssertionError(f"{what} is not refused: it returns {found}")


def refuses_second_derivatives(name: str, function: Callable[..., Tensor], *arguments: object) -> None:
    """Raises AssertionError unless the error of `once_differentiable` stops the second derivatives of all arguments.

    The loss is the sum of the squares and of the squared gradient for one argument. It depends on each argument also
    without that gradient, so a refusal that is not connected with the argument would only omit a term.
    """
    tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
    value = function(*arguments).square().sum()
    for penalised in tensors:
        (gradient,) = torch.autograd.grad(value, penalised, create_graph=True)
        loss = value + gradient.square().sum()
        for tensor in tensors:
            derivative = partial(torch.autograd.grad, loss, tensor, retain_graph=True)
            refuses(f"a second derivative of {name}", derivative, "once_differentiable")
