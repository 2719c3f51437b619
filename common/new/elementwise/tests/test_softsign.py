"""Tests the operator against reference.py: its values, its gradient, and its use with torch's tools."""

import pytest
import reference
import torch
from softsign import operators, softsign

HAS_CUDA = torch._C._dispatch_has_kernel_for_dispatch_key("softsign::forward", "CUDA") and torch.cuda.is_available()
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(params=["cpu", "cuda"] if HAS_CUDA else ["cpu"])
def device(request):
    return request.param


def numbers(*shape, dtype=torch.float64, device="cpu"):
    """Numbers from -3 to 3, without zero, where a function may have no derivative."""
    n = torch.Size(shape).numel()
    return (torch.arange(n, dtype=torch.float64) + 0.5).mul(6 / max(n, 1)).sub(3).reshape(shape).to(device, dtype)


def assert_equal_to_reference(x):
    """Compares values and gradients with those of the reference in float64, which are rounded to the dtype of x."""
    x = x.detach().requires_grad_()
    exact = x.detach().double().requires_grad_()
    y, expected = softsign(x), reference.softsign(exact)
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    grad_y = numbers(*x.shape, device=x.device).cos().to(x.dtype)
    got = [y, *torch.autograd.grad(y, x, grad_y)]
    wanted = [expected, *torch.autograd.grad(expected, exact, grad_y.double())]
    tolerance = 8 * torch.finfo(x.dtype).eps
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other.to(one.dtype), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 5, 70)])
def test_values_and_gradients(shape, dtype, device):
    assert_equal_to_reference(numbers(*shape, dtype=dtype, device=device))


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_values(dtype, device):
    """A step of a formula may overflow where the result does not: exp(x) is inf from x = 89 on in float32."""
    x = torch.tensor([10, 30, 100, 1000], dtype=dtype, device=device)
    assert_equal_to_reference(torch.cat([-x, x]))


def test_tensors_that_are_not_contiguous(device):
    x = numbers(8, 6, device=device)
    for view in (x.t(), x[::2, 1:], x[:, :1].expand(8, 6)):
        assert not view.is_contiguous()
        assert_equal_to_reference(view)


def test_gradcheck(device):
    assert torch.autograd.gradcheck(softsign, numbers(4, 5, device=device).requires_grad_())


@pytest.mark.parametrize("upstream", [torch.sum, lambda y: y.square().sum()], ids=["constant", "of x"])
def test_second_derivatives_are_refused(upstream, device):
    """The loss depends on x also without the penalty: a refusal that does not lead to x would lose the penalty."""
    x = numbers(4, device=device).requires_grad_()
    value = upstream(softsign(x))
    (first,) = torch.autograd.grad(value, x, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivatives"):
        torch.autograd.grad(value + first.square().sum(), x)


def test_forward_mode_is_refused(device):
    x = numbers(4, device=device)
    with pytest.raises(RuntimeError, match="no forward-mode derivatives"):
        torch.func.jvp(softsign, (x,), (x.cos(),))


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck(dtype, device):
    x = numbers(6, 4, dtype=dtype, device=device).t()
    torch.library.opcheck(operators.forward, (x.clone().requires_grad_(),))
    torch.library.opcheck(operators.backward, (x.cos(), x))


def test_compile(device):
    x = numbers(4, 5, dtype=torch.float32, device=device)
    torch.testing.assert_close(torch.compile(softsign, fullgraph=True)(x), softsign(x))


def test_wrong_arguments_are_refused(device):
    x = numbers(4, 5, device=device)
    with pytest.raises(RuntimeError, match="not implemented for 'Long'"):
        softsign(x.long())
    for wrong in (x[:1], x.flatten(), x.t(), x.float()):
        with pytest.raises(RuntimeError, match=r"^softsign: grad_y "):
            operators.backward(wrong, x)
