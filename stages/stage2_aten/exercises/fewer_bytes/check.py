import torch

from common.exercises.judge import require, right_or_refused, same, unchanged
from common.exercises.judging.repeats import results_kept

MOST_NUMBERS, MOST_CALLS = 2, 10


def check(work):
    unchanged(work, "gated.py", "Edit only csrc/gated.cpp")
    gated = work.load("gated").gated
    numbers = work.numbers()
    for B, S in ((3, 70), (1, 33), (5, 1)):
        for dtype in (torch.float32, torch.float64):
            values(gated, torch.randn(B, 2 * S, generator=numbers, dtype=dtype), numbers)
    z = torch.randn(70, 3, generator=numbers, dtype=torch.float64).repeat(2, 1).t()
    values(gated, z, numbers)
    large = torch.tensor([1.0, 1e4, 1.0]).repeat(z.size(1))[: z.size(1)]  # 0 * inf and inf - inf show as NaN
    values(gated, z.float() * large, numbers)
    values(gated, z * torch.tensor([1.0, 0.0]).repeat(z.size(1))[: z.size(1)], numbers)  # tanh is 0
    counts(work, gated, torch.randn(4, 2 * 50, generator=numbers))
    z = torch.randn(2, 6, generator=numbers, dtype=torch.float64, requires_grad=True)
    right_or_refused(gated, lambda z: torch.tanh(z[:, :3]) * torch.sigmoid(z[:, 3:]), {"z": z})
    calls = [[torch.randn(3, 2 * 70, generator=numbers, requires_grad=True)] for _ in range(2)]
    results_kept(work, "gated.gated", ("out", "d_z"), *calls)


def values(gated, z, numbers):
    """Makes two calls before the first gradient, so that values kept outside save_for_backward do not work."""
    B, S, dtype = z.size(0), z.size(1) // 2, z.dtype
    calls = [z, z.flip(1)]
    calls = [one.detach().requires_grad_() for one in calls]
    outs = [gated(one) for one in calls]
    for given, out in zip(calls, outs, strict=True):
        exact = given.detach().double().requires_grad_()
        a, b = exact.chunk(2, 1)
        want = torch.tanh(a) * torch.sigmoid(b)
        about = f"z ({B}, {2 * S}), {dtype}"
        same(
            "out",
            out,
            want,
            about,
            dtype,
            suspects={"tanh and sigmoid are exchanged": torch.tanh(b) * torch.sigmoid(a)},
        )
        one = torch.randn((), generator=numbers, dtype=torch.float64).to(dtype)
        for grad in (torch.randn(B, S, generator=numbers, dtype=torch.float64).to(dtype), one.expand(B, S)):
            (got,) = torch.autograd.grad(out, given, grad, retain_graph=True)
            (d_z,) = torch.autograd.grad(want, exact, grad.double(), retain_graph=True)
            exchanged = torch.cat(d_z.chunk(2, 1)[::-1], 1)
            same("d_z", got, d_z, about, dtype, suspects={"the halves are exchanged": exchanged})


def counts(work, gated, z):
    """Counts saved bytes, and the calls of forward and backward together."""
    z.requires_grad_()
    with work.counting() as counted:
        out = gated(z)
        torch.autograd.grad(out, z, torch.ones_like(out))
    units = out.numel()
    kept = counted.saved / (z.element_size() * units)
    require(kept >= 1, "backward needs values from forward, but nothing was passed to save_for_backward")
    require(
        kept <= MOST_NUMBERS,
        f"{kept:.3g} numbers of each unit are saved for backward ({counted.saved} bytes for {units} units); "
        f"{MOST_NUMBERS} are enough",
    )
    listed = ", ".join(f"{name} {times}" for name, times in sorted(counted.calls.items()))
    require(
        counted.all_calls <= MOST_CALLS,
        f"ATen is called {counted.all_calls} times, not counting views; {MOST_CALLS} are enough. All calls: {listed}",
    )
