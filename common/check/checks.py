"""The checks that every differentiable function of a stage must pass, whatever it computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

from ..cell.call import LOW_PRECISION, Call, Function, difference, input_gradients, outputs
from .subject import Subject, needs


def not_finite(subject: Subject) -> None:
    """NaN and infinity appear in the same places as with the plain equations, forward and backward."""
    case = subject.small_case()
    functions = subject.equations(case), subject.function(case)
    for bad in (float("nan"), float("inf"), -float("inf")):
        for name in case.differentiable:
            wanted, got = (_kinds(function, case, name, bad) for function in functions)
            for key in wanted:
                assert torch.equal(wanted[key], got[key]), (
                    f"{bad} in {name}: {key} is not NaN or infinite in the same places as with the plain equations"
                    f" ({case})"
                )


def _kinds(function: Function, case: Call, name: str, bad: float) -> dict[str, Tensor]:
    """For each result and gradient: 0 where finite, 1 where NaN, 2 and 3 where plus and minus infinity.

    In 16 bits, all numbers are positive. Otherwise a sum could cancel to zero, which depends on where results are
    rounded; and zero times infinity is NaN.
    """
    inputs, gradients = case.inputs(), case.gradients()
    if case.dtype in LOW_PRECISION:
        for differentiable in case.differentiable:
            inputs[differentiable].data.abs_()
        gradients = tuple(gradient.abs() for gradient in gradients)
    inputs[name].data.view(-1)[1] = bad
    got = results_of(function, case, inputs, gradients)
    return {key: t.isnan().int() + 2 * t.isposinf().int() + 3 * t.isneginf().int() for key, t in got.items()}


def results_of(
    function: Function, case: Call, inputs: dict[str, Tensor], gradients: tuple[Tensor | None, ...] | None = None
) -> dict[str, Tensor | None]:
    """Every result of a call with these inputs, and the gradients of those that require them.

    By default, the upstream gradients are those of the case.
    """
    results = function(*inputs.values())
    gradients = case.gradients() if gradients is None else gradients
    return dict(zip(case.results, results, strict=True)) | input_gradients(results, inputs, gradients)


def gradcheck(subject: Subject) -> None:
    """torch.autograd.gradcheck in float64: compares the gradient with finite differences."""
    for case in subject.tiny_cases():
        try:
            torch.autograd.gradcheck(subject.function(case), tuple(case.inputs().values()))
        except GradcheckError as error:
            first = str(error).strip().partition("\n")[0]
            raise AssertionError(f"gradcheck ({case}): {first}") from None


def second_derivatives(subject: Subject) -> None:
    """Second derivatives are right, or refused with an error; never silently wrong."""
    case = subject.tiny_cases()[0]
    function, inputs = subject.function(case), tuple(case.inputs().values())
    results = function(*inputs)
    # The results are squared, so that the upstream gradients require gradients: once_differentiable tests only these.
    loss = sum(result.square().sum() for result in results)
    first = torch.autograd.grad(loss, inputs, create_graph=True)
    try:
        sum(gradient.square().sum() for gradient in first).backward()
    except RuntimeError as error:
        assert "once_differentiable" in str(error), f"second derivatives fail with an unclear error: {error}"
        return
    try:
        torch.autograd.gradgradcheck(function, inputs)
    except GradcheckError:
        raise AssertionError(
            "second derivatives are silently wrong; make them right or refuse them with once_differentiable"
        ) from None


def assert_refused(function: Function, arguments: dict[str, Tensor], names: Sequence[str], what: str) -> None:
    """Raises AssertionError unless the call is refused with an error that says `what` of one of these arguments."""
    given = ", ".join(f"{name} {t.dtype} {tuple(t.shape)} on {t.device}" for name, t in arguments.items())
    try:
        function(*arguments.values())
    except RuntimeError as error:
        message = str(error).partition("\n")[0]
        assert what in message, f"{message!r} does not say {what!r}; given {given}"
        assert any(f"lltm: {name} " in message for name in names), f"{message!r} names none of {names}"
        return
    raise AssertionError(f"not refused: {given}")


def same_bits(subject: Subject) -> None:
    """The same call gives the same bits every time."""
    case = subject.small_case()
    function = subject.function(case)
    first, *others = (outputs(function, case) for _ in range(3))
    for other in others:
        for name, tensor in first.items():
            assert torch.equal(tensor, other[name]), f"{name} differs from one call to the next ({case})"


@needs("streams")
def side_stream(subject: Subject) -> None:
    """The work runs on the current stream, so it waits for inputs that are written late on a side stream."""
    case = subject.small_case()
    inputs = case.inputs()
    late = {name: torch.zeros_like(t).requires_grad_(t.requires_grad) for name, t in inputs.items()}
    torch.cuda.synchronize(subject.device)
    with torch.cuda.device(subject.device), torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda._sleep(100_000_000)  # about 50 ms in which a kernel on another stream would read zeros
        for name, tensor in late.items():
            tensor.data.copy_(inputs[name].data)
        got = results_of(subject.function(case), case, late)
        torch.cuda.current_stream().synchronize()
    message = difference(case, got)
    assert message is None, f"on a side stream: {message}"


@needs("two GPUs")
def second_device(subject: Subject) -> None:
    """Tensors on GPU 1 while GPU 0 is the current one."""
    elsewhere = replace(subject, device="cuda:1")
    with torch.cuda.device(0):
        elsewhere.agree(elsewhere.small_case())
