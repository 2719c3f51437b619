import math

import torch

from common.exercises.judge import OPERATORS, Failure, agree, cases, require

HAIR = 1e-6  # the error that computing in float may add to half a unit in the last place


def check(work):
    agree(work.cell(), cases(work))
    probe = work.beside(OPERATORS)
    numbers = work.numbers()
    for dtype in (torch.bfloat16, torch.float16):
        for B, S in ((3, 70), (5, 300)):
            one_rounding(probe, dtype, B, S, numbers)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        near_zero(probe, dtype)


def one_rounding(probe, dtype, B, S, numbers):
    """The results of both operators are the exact values, rounded once."""

    def fresh(*shape):
        return torch.randn(shape, generator=numbers).to(dtype)

    what = f"B={B}, S={S}, {str(dtype).removeprefix('torch.')}"
    z, old_cell, grad_h, grad_cell = fresh(B, 3 * S), fresh(B, S), fresh(B, S), fresh(B, S)
    new_h, new_cell, gates = probe.call("pointwise", z, old_cell)
    want = forward(z.double(), old_cell.double())
    for name, one, exact in zip(("gates", "new_cell", "new_h"), (gates, new_cell, new_h), want, strict=True):
        rounded_once(name, one, exact, what)
    got = probe.call("pointwise_backward", grad_h, grad_cell, gates, new_cell)
    want = backward(*(tensor.double() for tensor in (grad_h, grad_cell, gates, new_cell)))
    for name, one, exact in zip(("d_z", "d_old_cell"), got, want, strict=True):
        rounded_once(name, one, exact, what)


def rounded_once(name, got, want, what):
    """Raises `Failure` where a result is not the nearest number of its dtype."""
    require(got.shape == want.shape, f"{name} has shape {tuple(got.shape)}, expected {tuple(want.shape)} ({what})")
    limits = torch.finfo(got.dtype)
    unit = limits.eps * 2.0 ** (torch.frexp(want.abs().clamp(min=limits.tiny)).exponent - 1).double()
    off = (got.double() - want).abs()
    wrong = ~(off <= unit / 2 + HAIR)  # NaN, too
    if not wrong.any():
        return
    at = tuple(int(k) for k in wrong.nonzero()[0])
    raise Failure(
        f"{name} is not the nearest number of its dtype at {list(at)}: got {got[at].item():.6g}, the exact value is "
        f"{want[at].item():.6g} ({what})\n{int(wrong.sum())} of {wrong.numel()} are off by more than one rounding. "
        "An intermediate value is stored in 16 bits"
    )


def near_zero(probe, dtype):
    """The candidate cell of a z_g near zero has all digits of its dtype."""
    z = torch.tensor([[0, 0, -1e-7]], dtype=dtype)
    _, _, gates = probe.call("pointwise", z, torch.zeros(1, 1, dtype=dtype))
    z_g, got = z[0, 2].item(), gates[0, 2, 0].item()
    want = math.expm1(z_g)
    require(
        abs(got - want) <= 4 * torch.finfo(dtype).eps * abs(want),
        f"candidate_cell is {got:.9g} where z_g is {z_g:.9g}, expected {want:.9g} "
        f"({str(dtype).removeprefix('torch.')})\n"
        "exp(z) - 1 loses the digits of a z near zero. elu of csrc/lltm_rows.h keeps them",
    )


def forward(z, old_cell):
    """The equations, in float64."""
    z_i, z_o, z_g = z.chunk(3, dim=1)
    input_gate, output_gate, candidate_cell = z_i.sigmoid(), z_o.sigmoid(), torch.nn.functional.elu(z_g)
    new_cell = old_cell + candidate_cell * input_gate
    return torch.stack([input_gate, output_gate, candidate_cell], dim=1), new_cell, new_cell.tanh() * output_gate


def backward(grad_h, grad_cell, gates, new_cell):
    """Their gradients, from gates and new_cell as they were stored."""
    (input_gate, output_gate, candidate_cell), tanh = gates.unbind(1), new_cell.tanh()
    d_new_cell = grad_cell + grad_h * output_gate * (1 - tanh * tanh)
    d_z = (
        d_new_cell * candidate_cell * input_gate * (1 - input_gate),
        grad_h * tanh * output_gate * (1 - output_gate),
        d_new_cell * input_gate * torch.where(candidate_cell > 0, 1.0, candidate_cell + 1),
    )
    return torch.cat(d_z, dim=1), d_new_cell
