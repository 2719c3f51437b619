"""The checks that every differentiable function of a stage must pass, whatever it computes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    """Every second derivative is right or refused, by whatever path: never silently wrong.

    The loss is a value of the results plus the squared gradient of this value for one argument, as with a gradient
    penalty. Its gradient for any argument is that of torch's own operations, or an error that says why there is none.
    Each gradient is asked for alone: `backward()` would also run a refusal that is not connected with the argument.
    """
    case = subject.tiny_cases()[0]
    functions = subject.equations(case), subject.function(case)
    is_refused = False
    for of, penalised in itertools.product(["all", *case.results], case.differentiable):
        (wanted, arguments), (loss, own_arguments) = (_penalised(one, case, of, penalised) for one in functions)
        for name in case.differentiable:
            what = f"the gradient for {name} of a loss that contains the gradient for {penalised}"
            (expected,) = torch.autograd.grad(wanted, arguments[name], retain_graph=True)
            try:
                (got,) = torch.autograd.grad(loss, own_arguments[name], retain_graph=True)
            except RuntimeError as error:
                said = str(error).partition("\n")[0]
                assert "once_differentiable" in said, f"{what} fails with an unclear error: {said}"
                is_refused = True
            else:
                assert torch.allclose(got, expected, rtol=1e-8, atol=1e-9), (
                    f"{what} is silently wrong ({case}): compute it from tensors that autograd follows, or refuse it "
                    "in a node that leads to every argument"
                )
    if not is_refused:
        try:
            torch.autograd.gradgradcheck(subject.function(case), tuple(case.inputs().values()))
        except GradcheckError as error:
            first = str(error).strip().partition("\n")[0]
            raise AssertionError(f"gradgradcheck ({case}): {first}") from None


def _penalised(function: Function, case: Call, of: str, name: str) -> tuple[Tensor, dict[str, Tensor]]:
    """A value of the results plus the square of its gradient for one argument; and the arguments, as leaves.

    The value is the sum of one result, whose upstream gradient is a constant, or of the squares of all results, so
    that the upstream gradients depend on the arguments, too.
    """
    inputs = case.inputs()
    results = dict(zip(case.results, function(*inputs.values()), strict=True))
    value = sum(result.square().sum() for result in results.values()) if of == "all" else results[of].sum()
    (gradient,) = torch.autograd.grad(value, inputs[name], create_graph=True)
    return value + gradient.square().sum(), inputs


@contextmanager
def without_warning(begins: str) -> Iterator[None]:
    """Hides a warning that is about torch's own code, given how it begins."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", begins)
        yield


@without_warning("`torch.jit.script` is")  # which torch's rules for forward mode use
def transforms(subject: Subject) -> None:
    """torch.func.grad, its use for each sample of a batch, and forward mode are right or refused."""
    case = subject.tiny_cases()[0]
    equations, function = subject.equations(case), subject.function(case)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    for name, value in inputs.items():

        def of_one(tensor: Tensor, call: Function, name: str = name) -> Tensor:
            return sum(result.square().sum() for result in call(*(inputs | {name: tensor}).values()))

        derivatives = {
            "torch.func.grad": lambda call, v=value, f=of_one: torch.func.grad(f)(v, call),
            "torch.vmap of torch.func.grad": lambda call, v=value, f=of_one: torch.vmap(
                torch.func.grad(f), in_dims=(0, None)
            )(torch.stack([v, v + 1]), call),
            "torch.func.jvp": lambda call, v=value, f=of_one: torch.func.jvp(lambda x: f(x, call), (v,), (v.cos(),))[
                1
            ],
        }
        for what, derivative in derivatives.items():
            try:
                got = derivative(function)
            except (RuntimeError, NotImplementedError) as error:
                assert str(error), f"{what} for {name} fails without a message"
            else:
                assert torch.allclose(got, derivative(equations), rtol=1e-8, atol=1e-9), (
                    f"{what} for {name} is silently wrong ({case})"
                )


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
