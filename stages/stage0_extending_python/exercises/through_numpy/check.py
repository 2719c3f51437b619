from pathlib import Path

import torch

from common.exercises.judge import Failure, made_by, require, same

SIZES = (
    (9, 3, torch.float64),
    (7, 2, torch.float64),
    (70, 4, torch.float32),
    (60, 40, torch.float64),
    (5, 5, torch.float32),
    (6, 1, torch.float64),
    (8, 3, torch.float16),
)  # N, K


def check(work):
    smooth, numbers = work.load("smooth").smooth, work.numbers()
    for N, K, dtype in SIZES:
        signal = torch.randn(N, generator=numbers, dtype=torch.float64)
        kernel = torch.randn(K, generator=numbers, dtype=torch.float64)
        grad = torch.randn(N - K + 1, generator=numbers, dtype=torch.float64).to(dtype)
        case = f"N={N}, K={K}, {str(dtype).removeprefix('torch.')}"
        given = signal.to(dtype).requires_grad_()
        y = smooth(given, kernel.tolist())
        if not isinstance(y, torch.Tensor):
            raise Failure(f"smooth returns {type(y).__name__}, expected a tensor ({case})")
        require(
            y.dtype == dtype,
            f"smooth(signal, kernel) has dtype {y.dtype}, expected {dtype} ({case}): NumPy returns float64 if the "
            "kernel is a list; convert the result to signal's dtype",
        )
        same("smooth(signal, kernel)", y, slid(given.detach().double(), kernel), case, dtype)
        require(y.requires_grad, f"y has no gradient: autograd does not know how it was computed ({case})")
        made_by(work, "Smooth", "smooth", "smooth", given, kernel.tolist())
        (d_signal,) = torch.autograd.grad(y, given, grad, allow_unused=True)
        suspects = {
            "the kernel runs in the same direction as in forward; backward needs it reversed": gradient(
                given, grad, kernel.flip(0)
            )
        }
        same("d_signal", d_signal, gradient(given, grad, kernel), case, dtype, suspects=suspects)
    several_calls(work, numbers)


def several_calls(work, numbers):
    """A call must not depend on the one before it, or change the kernel, which belongs to the caller."""
    signal = torch.randn(9, generator=numbers, dtype=torch.float64).requires_grad_()
    first, second = torch.randn(2, 3, generator=numbers, dtype=torch.float64)
    twice = work.beside(Path(__file__).with_name("twice.py"))
    called = twice.calls_numpy(signal, first.tolist())
    require(called, "smooth does not call numpy.convolve, for which this exercise writes a gradient")
    found, kernel = twice.gradients(signal, first.tolist(), second.tolist())
    require(kernel == first.tolist(), "smooth or its backward changes the list with the kernel: it is the caller's")
    want = gradient(signal, torch.ones(7), first)
    suspects = {"this is the gradient for the kernel of another call": gradient(signal, torch.ones(7), second)}
    cases = ("smooth was called with another kernel before this backward", "the second call with this list")
    for d_signal, case in zip(found, cases, strict=True):
        same("d_signal", d_signal, want, case, torch.float64, suspects=suspects)


def slid(signal, kernel):
    """The sum in the task: windows of the signal times the reversed kernel."""
    return signal.unfold(0, len(kernel), 1) @ kernel.flip(0)


def gradient(signal, grad, kernel):
    """The gradient of that sum, computed by autograd."""
    leaf = signal.detach().double().requires_grad_()
    (found,) = torch.autograd.grad(slid(leaf, kernel), leaf, grad.double())
    return found
