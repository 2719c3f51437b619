"""Tests the cell against reference.py: its values, its gradients, its checks, and its use with torch's tools.

These tests work for any cell: arguments come from reference.py, and those of the operators from calls of the cell.
"""

import pytest
import reference
import torch
from lltm import lltm
from torch.utils._python_dispatch import TorchDispatchMode

HAS_CUDA = torch._C._dispatch_has_kernel_for_dispatch_key("lltm::pointwise", "CUDA") and torch.cuda.is_available()
DEVICES = ["cpu", "cuda"] if HAS_CUDA else ["cpu"]
SIZES = [(3, 5, 70), (1, 1, 1), (0, 4, 8), (2, 3, 300)]  # B, I, S
# The allowed error of a number near one, in epsilons of its dtype. Most of it is the rounding of sums. Matrix
# products in half and bfloat16 compute their sums in float32.
EPSILONS = {torch.float64: 32, torch.float32: 32, torch.float16: 8, torch.bfloat16: 8}


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def outputs(cell, arguments):
    """The results of a cell, as a tuple even if there is only one tensor."""
    results = cell(*arguments)
    return results if isinstance(results, tuple) else (results,)


def gradients(results, arguments, wanted=None):
    """The gradients of the wanted results (by default all), for upstream gradients that differ by element."""
    chosen = [result for index, result in enumerate(results) if wanted in (None, index)]
    numbers = [torch.arange(r.numel()).add(k).double().cos() for k, r in enumerate(chosen)]
    from_above = [n.reshape(r.shape).to(r) for n, r in zip(numbers, chosen, strict=True)]
    return torch.autograd.grad(chosen, arguments, from_above, allow_unused=True, materialize_grads=True)


def assert_equal_to_reference(results, arguments, wanted=None):
    """Compares values, and gradients of the wanted results (by default all), with the reference in float64."""
    exact = [tensor.detach().double().requires_grad_() for tensor in arguments]
    expected = outputs(reference.cell, exact)
    got = [*results, *gradients(results, arguments, wanted)]
    tolerance = EPSILONS[results[0].dtype] * torch.finfo(results[0].dtype).eps
    for one, other in zip(got, [*expected, *gradients(expected, exact, wanted)], strict=True):
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", EPSILONS)
@pytest.mark.parametrize("size", SIZES)
def test_values_and_gradients(size, dtype, device):
    arguments = [*reference.arguments(*size, dtype, device).values()]
    results = outputs(lltm, arguments)
    assert {result.dtype for result in results} == {dtype}
    assert_equal_to_reference(results, arguments)


def test_gradcheck(device):
    assert torch.autograd.gradcheck(lltm, tuple(reference.arguments(2, 3, 4, device=device).values()))


def test_gradients_of_one_result_alone(device):
    arguments = [*reference.arguments(3, 5, 70, device=device).values()]
    for index in range(len(outputs(reference.cell, arguments))):
        assert_equal_to_reference(outputs(lltm, arguments), arguments, wanted=index)


def test_tensors_with_gaps(device):
    arguments = reference.arguments(3, 5, 70, device=device).values()
    with_gaps = [torch.stack([t, t], dim=-1).detach()[..., 0].requires_grad_() for t in arguments]
    assert not any(tensor.is_contiguous() for tensor in with_gaps)
    assert_equal_to_reference(outputs(lltm, with_gaps), with_gaps)


@pytest.mark.parametrize("upstream", [torch.sum, lambda y: y.square().sum()], ids=["constant", "of the arguments"])
def test_second_derivatives_are_refused(upstream, device):
    """The gradient for any argument of a loss that contains the gradient for any other.

    The loss depends on each argument also without this penalty, so a refusal that does not lead to the argument would
    lose the penalty without an error.
    """
    arguments = [*reference.arguments(2, 3, 4, device=device).values()]
    value = sum(map(upstream, outputs(lltm, arguments)))
    for penalised in arguments:
        (first,) = torch.autograd.grad(value, penalised, create_graph=True)
        loss = value + first.square().sum()
        for argument in arguments:
            with pytest.raises(RuntimeError, match="second derivatives"):
                torch.autograd.grad(loss, argument, retain_graph=True)


def test_forward_mode_is_refused(device):
    arguments = [tensor.detach() for tensor in reference.arguments(2, 3, 4, device=device).values()]
    for k, tensor in enumerate(arguments):
        cell_of_one = lambda one, k=k: lltm(*arguments[:k], one, *arguments[k + 1 :])  # noqa: E731
        with pytest.raises(RuntimeError, match="no forward-mode derivatives"):
            torch.func.jvp(cell_of_one, (tensor,), (tensor.cos(),))


def test_torch_func_is_refused(device):
    first, *others = (tensor.detach() for tensor in reference.arguments(2, 3, 4, device=device).values())
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(lambda one: outputs(lltm, [one, *others])[0].sum())(first)


class Calls(TorchDispatchMode):
    """Records every call of an operator of this package, as (operator, arguments)."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "lltm":
            self.seen.append((function, args))
        return function(*args, **(kwargs or {}))


def calls(dtype, device):
    """The calls of the forward and backward operators, for the gradients of all results and of each alone.

    Tensors passed to the forward operator require gradients; the backward operator has no derivative.
    """
    arguments = [*reference.arguments(3, 5, 70, dtype, device).values()]
    with Calls() as made:
        for wanted in (None, *range(len(outputs(reference.cell, arguments)))):
            gradients(outputs(lltm, arguments), arguments, wanted)
    for operator, given in made.seen:
        needs_gradients = not operator._opname.endswith("_backward")
        yield operator, tuple(t if t is None else t.detach().clone().requires_grad_(needs_gradients) for t in given)


@pytest.mark.parametrize("dtype", EPSILONS)
def test_opcheck(dtype, device):
    made = list(calls(dtype, device))
    assert {operator._opname for operator, _ in made} == {"pointwise", "pointwise_backward"}
    for operator, given in made:
        torch.library.opcheck(operator, given)


@pytest.mark.parametrize("dynamic", [False, True])
@torch._inductor.config.patch(fx_graph_cache=False)
def test_compile(dynamic, device):
    """Compiles each graph again: a cached graph would not be compared with the current fake kernels."""
    torch._dynamo.reset()
    compiled = torch.compile(lltm, fullgraph=True, dynamic=dynamic)
    for size in [(3, 5, 70), (4, 6, 33)][: 1 + dynamic]:
        arguments = [*reference.arguments(*size, torch.float32, device).values()]
        assert_equal_to_reference(outputs(compiled, arguments), arguments)


def test_export(device):
    class Cell(torch.nn.Module):
        def forward(self, *arguments):
            return lltm(*arguments)

    arguments = tuple(tensor.detach() for tensor in reference.arguments(3, 5, 70, device=device).values())
    exported = torch.export.export(Cell(), arguments).module()
    torch.testing.assert_close(exported(*arguments), lltm(*arguments))


def test_autocast(device):
    arguments = [*reference.arguments(3, 5, 70, torch.float32, device).values()]
    with torch.autocast(device, torch.bfloat16):
        results = outputs(lltm, arguments)
    assert {result.dtype for result in results} == {torch.bfloat16}
    assert_equal_to_reference(results, arguments)


def test_vmap(device):
    one = [tensor.detach() for tensor in reference.arguments(3, 5, 70, device=device).values()]
    sets = [one, [tensor.flip(0) for tensor in one]]
    together = outputs(torch.vmap(lltm), [torch.stack(tensors) for tensors in zip(*sets, strict=True)])
    for index, arguments in enumerate(sets):
        torch.testing.assert_close(tuple(result[index] for result in together), outputs(lltm, arguments))
    first = (0, *[None] * (len(one) - 1))  # many inputs, with the same other arguments for each
    together = outputs(torch.vmap(lltm, first), [torch.stack([one[0], -one[0]]), *one[1:]])
    torch.testing.assert_close(tuple(result[1] for result in together), outputs(lltm, [-one[0], *one[1:]]))


def test_arguments_that_do_not_fit_are_refused(device):
    arguments = reference.arguments(3, 5, 70, device=device)
    for name, tensor in arguments.items():
        for wrong in (tensor[..., :-1], tensor[..., :1], tensor.unsqueeze(0), tensor.float(), tensor.long()):
            with pytest.raises(RuntimeError, match=r"^lltm: "):
                lltm(**{**arguments, name: wrong})


def test_the_operators_check_what_they_are_given(device):
    """A kernel does not check its arguments, so the operator must."""
    for operator, given in calls(torch.float64, device):
        for k, tensor in enumerate(given):
            for wrong in () if tensor is None else (tensor[..., :-1], tensor[:-1], tensor[0], tensor.float()):
                with pytest.raises(RuntimeError, match=r"^lltm: "):
                    operator(*given[:k], wrong, *given[k + 1 :])
