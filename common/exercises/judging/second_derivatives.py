"""Second derivatives of a learner's function: right, or refused by whatever path. Never silently wrong.

from common.exercises.judging.second_derivatives import right_or_refused
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from ..failures import Failure, require
from ..runner.process import LearnerError
from ..runner.remote import RemoteFunction
from .assertions import describe_value

REASONS = ("once_differentiable", "derivative")  # one of them is in the message of a refusal
CONNECT = (
    "call the gradient as a Function of its own, whose backward raises the error, and let it get the upstream "
    "gradients and a saved argument or result of forward"
)


def right_or_refused(
    function: RemoteFunction, equations: Callable, inputs: Mapping[str, Tensor], hint: str = CONNECT
) -> None:
    """Raises `Failure` if a second derivative of a function is silently wrong, or refused without the reason.

    The loss is the sum of the results, or of their squares, and of the squared gradient for one input, as with a
    gradient penalty. Its gradient for each input alone must be that of `equations`, or an error. With the squares,
    the upstream gradients depend on the inputs, too. With the plain sum, only what forward saved connects backward
    with them. `hint` says how to refuse a second derivative.
    """
    results = _listed(function(*inputs.values()))
    require(
        any(isinstance(one, Tensor) and one.requires_grad for one in results),
        f"no result requires a gradient: {', '.join(describe_value(one) for one in results)}",
    )
    wrong = [
        (penalised, asked)
        for k, penalised in enumerate(inputs)
        for n, asked in enumerate(inputs)
        if not all(
            _is_right_or_refused(
                function, k, n, squared, _expected(equations, inputs, penalised, asked, squared), hint
            )
            for squared in (True, False)
        )
    ]
    if not wrong:
        return
    if not _backward_raises(function, results):
        raise Failure(
            "computing a second derivative raises no error, but the result is wrong: autograd cannot see "
            f"what backward computes. {hint}"
        )
    penalised, asked = wrong[0]
    raise Failure(
        f"torch.autograd.grad(loss, {asked}) of a loss that contains the gradient for {penalised} returns a number "
        f"that lacks a part, without an error ({len(wrong)} of {len(inputs) ** 2} such pairs of arguments). "
        f"loss.backward() does raise one, but the node that refuses is not connected with {asked}. torch's "
        f"once_differentiable never connects it. {hint}"
    )


def _is_right_or_refused(
    function: RemoteFunction, penalised: int, asked: int, squared: bool, want: Tensor, hint: str
) -> bool:
    try:
        got = function.second_of_pair(penalised, asked, squared)
    except LearnerError as error:
        said = str(error).partition("\n")[0]
        if not any(reason in said for reason in REASONS):
            raise Failure(f"a second derivative raises {said!r}, which does not say why. {hint}") from None
        return True
    return torch.allclose(torch.zeros_like(want) if got is None else got.double(), want, rtol=1e-7, atol=1e-9)


def _expected(equations: Callable, inputs: Mapping[str, Tensor], penalised: str, asked: str, squared: bool) -> Tensor:
    """The gradient for `asked` of the same loss, from the equations, which autograd can follow."""
    own = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    value = sum((one.square() if squared else one).sum() for one in _listed(equations(*own.values())))
    (first,) = torch.autograd.grad(value, own[penalised], create_graph=True)
    (second,) = torch.autograd.grad(value + first.square().sum(), own[asked], allow_unused=True)
    return torch.zeros_like(own[asked]) if second is None else second


def _backward_raises(function: RemoteFunction, results: list[Tensor]) -> bool:
    """Whether a second `backward()`, which runs every node, is refused."""
    try:
        function.second_derivatives(*(torch.ones_like(one) for one in results))
    except LearnerError as error:  # without any refusal, there may be nothing to differentiate
        return any(reason in str(error) for reason in REASONS)
    return False


def _listed(results: object) -> list:
    return list(results) if isinstance(results, list | tuple) else [results]
