import torch

from common.exercises.judge import require, same
from common.exercises.judging.programs import printed

NUMBERS = ((3, "a, b and out"), (5, "a, b, the gradient, d_a and d_b"))  # in forward, in backward

SMALL_GATES = -20  # sigmoid of it is 2e-9
RAMP = 120  # from its negative to this: exp(z) or exp(-z) becomes infinite on the way


def check(work):
    numbers = work.numbers()
    for B, S, scale in (
        (3, 70, 1),
        (1, 128, 1),
        (5, 1, 1),
        (2, 64, 1000),
        (2, 64, 10**9),
        (2, 64, SMALL_GATES),
        (1, 70, RAMP),
    ):
        case = f"B={B}, S={S}" + (f", z about {'±' * (scale > 0)}{scale}" if scale != 1 else "")
        z = scale * torch.randn(B, 2 * S, generator=numbers)
        z[torch.rand(B, 2 * S, generator=numbers) < 0.1] = 0
        if scale == SMALL_GATES:
            z = scale + torch.randn(B, 2 * S, generator=numbers)  # sigmoid has few digits if 1 was added to it
        if scale == RAMP:
            z[0, :S] = torch.linspace(-RAMP, RAMP, S)
        grad = torch.randn(B, S, generator=numbers)
        grad[:, ::5] = 0
        got, counted = printed(work, "swiglu.cu", [B, S, z, grad], (3 * B * S,), case)
        compare(got, z, grad, case)
        kernels = [launch.kernel for launch in counted.launches]
        named = ", ".join(kernels)
        require(
            len(kernels) == 2,
            f"{case}: right, but the kernels are {named}: expected one each for forward and backward",
        )
        for kernel, (most, which) in zip(kernels, NUMBERS, strict=True):
            moved = counted.total("bytes", kernel, "global") / (z.element_size() * B * S)
            require(
                moved <= most,
                f"{case}: right, but {kernel} moves {moved:.3g} numbers for each unit; {most} are enough: {which}",
            )
            require(moved == most, f"{case}: {kernel} moves only {moved:.3g} numbers for each unit, expected {most}")
    allocated = work.code("swiglu.cu").count("cudaMalloc")
    require(
        allocated <= 4,
        f"main allocates {allocated} arrays, but z, grad, out and d_z are enough: an array that no kernel uses takes "
        "memory, too",
    )


def compare(got, z, grad, case):
    """Compares both results with the equations in float64."""
    B, S = grad.shape
    out, d_z = got[: B * S].view(B, S), got[B * S :].view(B, 2 * S)
    a, b = z.double().chunk(2, 1)
    g, s = grad.double(), torch.sigmoid(a)
    lost = (d_z[:, :S] + d_z[:, S:]).isnan()
    require(
        not lost.any() or bool((lost & (a != 0) & (b != 0)).any()),
        f"d_z is NaN where a or b is 0, and only there: 0/0. 0 = 0 * x does not determine x ({case})",
    )
    same("out", out, a * s * b, case, torch.float32, 1e-5)
    wrong = {
        "the derivative of sigmoid takes sigmoid(a), but is computed from a": s + a * a * (1 - a),
        "d_a is the derivative of sigmoid alone": s * (1 - s),
        "d_a lacks its second term: silu(a) depends on a twice": s,
    }
    suspects = {words: torch.cat([g * b * derivative, g * a * s], 1) for words, derivative in wrong.items()}
    want = torch.cat([g * b * (s + a * s * (1 - s)), g * a * s], 1)
    same("d_z", d_z, want, case, torch.float32, 1e-5, suspects)
