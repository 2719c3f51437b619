import re
from pathlib import Path

import torch

from common.exercises.judge import BuildFailure, Failure, agree, cases, require, same

LARGE = 1e4


def check(work):
    cell = work.cell()
    for dtype in (torch.float32, torch.float64):
        ordinary = 2 * torch.randn(41, generator=work.numbers(), dtype=torch.float64)
        check_each_function(work, ordinary.to(work.device, dtype), f"41 values, {dtype}")
    tiny = -torch.logspace(-7, -4, 41).to(work.device)
    same("elu(z)", activated(work, tiny)[2], torch.expm1(tiny.double()), "z from -1e-7 to -1e-4, float32",
         torch.float32, suspects={LOST: torch.exp(tiny) - 1})  # fmt: skip
    large = torch.tensor([-LARGE, LARGE], device=work.device)
    for name, result in zip(("sigmoid", "sigmoid", "elu"), activated(work, large), strict=True):
        for z, value in zip(large.tolist(), result.tolist(), strict=True):
            require(value == value, f"{name}({z:.0f}) is NaN: {NOT_A_NUMBER[name]}")
    check_each_function(work, large, "z = -10000 and 10000")
    check_each_function(work, large * torch.inf, "z = -infinity and infinity")
    for dtype in (torch.float32, torch.float64):
        check_near_zero(work, dtype)
    for name, result in zip(("sigmoid", "sigmoid", "elu"), activated(work, large * torch.nan), strict=True):
        require(
            result.isnan().all(),
            f"{name}(NaN) is {result[0]:g}, expected NaN: fmax, fmin and comparisons can lose a NaN, which then no "
            "longer shows that a training has diverged",
        )
    agree(cell, cases(work))
    if work.target == "emulator":
        for mark in UNMARKED:
            check_mark(work, mark)


NOT_A_NUMBER = {
    "sigmoid": "in float, exp(z) is infinite from z = 89 on, and inf/inf is NaN. With exp(-z) in the denominator "
    "only, an overflow does no harm: 1/inf is 0",
    "elu": "in float, exp(z) is infinite from z = 89 on, and 0 times infinity is NaN: choose one of the two values "
    "instead of multiplying the other by 0",
}
PROMOTES = (
    "A float is converted to double here, and so is every float combined with it. An integer such as 1 takes the "
    "type of the other operand, and scalar_t(0.5) is a float if scalar_t is float"
)
UNMARKED = {
    "__host__": "with nvcc, a host function could not call it",
    "__device__": "on the emulator, a kernel can call any function, but with nvcc only a marked one",
}
LOST = "this is exp(z) - 1 computed directly, which loses the digits of a z near zero"


def check_mark(work, mark):
    """Checks with the compiler that each function has the mark, and that no float is converted to double."""
    probe = Path(__file__).with_name("marks.cu").read_text(encoding="utf-8")
    file = work.folder / "marks.cu"
    file.write_text(probe.replace("MARK", mark), encoding="utf-8")
    try:
        ran = work.program(file.name)
    except BuildFailure as failure:
        if not re.search("double-promotion|float-conversion", str(failure)):
            raise
        raise Failure(f"{failure}\n{PROMOTES}") from None
    finally:
        file.unlink()
    for name in ("sigmoid", "d_sigmoid", "d_tanh", "elu", "d_elu"):
        require(f"{name} 1" in ran.output.splitlines(), f"{name} is not marked {mark}: {UNMARKED[mark]}. "
                "Write __host__ __device__ __forceinline__ before the return type")  # fmt: skip


def check_each_function(work, z, what):
    """Tests each function on its own; the derivatives get the outputs of torch's functions."""
    exact = z.double()
    s, t, e = exact.sigmoid(), exact.tanh(), torch.nn.functional.elu(exact)
    sigmoid, _, elu = activated(work, z)
    same("sigmoid(z)", sigmoid, s, what, z.dtype)
    same("elu(z)", elu, e, what, z.dtype)
    d_sigmoid, d_tanh, d_elu = derivatives(work, s.to(z.dtype), z, e.to(z.dtype))
    from_z = "this is the derivative as a function of z, but the argument is the function's output"
    same("d_sigmoid(s)", d_sigmoid, s * (1 - s), what, z.dtype, suspects={from_z: s.sigmoid() * (1 - s.sigmoid())})
    same("d_tanh(t)", d_tanh, 1 - t * t, what, z.dtype, suspects={from_z: 1 - t.tanh() ** 2})
    want = torch.where(exact > 0, 1.0, e + 1)
    same("d_elu(e)", d_elu, want, what, z.dtype, suspects={from_z: torch.where(exact > 0, 1.0, e.exp())})


def check_near_zero(work, dtype):
    """Checks that elu has all digits of its dtype, wherever exp(z) - 1 or a short series begins to lose them."""
    z = -torch.logspace(-10, 0, 121, dtype=dtype).to(work.device)
    got, want = activated(work, z)[2].double(), z.double().expm1()
    errors = (got / want - 1).abs()
    worst = int(errors.argmax())
    require(
        errors[worst] < 16 * torch.finfo(dtype).eps,
        f"elu({z[worst]:.4g}) is {got[worst]:.17g}, expected {want[worst]:.17g} ({dtype}): exp(z) - 1 loses digits "
        "of every small z, and a series with few terms is exact only next to zero. std::expm1 has them all",
    )


def activated(work, z):
    """sigmoid, sigmoid and elu of z, [S]: the gates that forward returns for zero weights and the bias z."""
    S = len(z)
    zero = z.new_zeros
    *_, gates = work.load("_C").forward(zero(1, 1), zero(3 * S, S + 1), z.repeat(3), zero(1, S), zero(1, S))
    return gates[0].chunk(3)


def derivatives(work, s, new_cell, e):
    """d_sigmoid(s), d_tanh(tanh(new_cell)) and d_elu(e), [S] each: backward's results if the other factors are 1."""
    ones = torch.ones_like(s)
    S = len(s)

    def backward(grad_h, grad_cell, input_gate, output_gate, candidate_cell):
        gates = torch.cat([input_gate, output_gate, candidate_cell])[None]
        weights, X = s.new_zeros(3 * S, S + 1), s.new_zeros(1, S + 1)
        found = work.load("_C").backward(grad_h, grad_cell, weights, X, gates, new_cell[None], [True] * 5)
        return [*found[2].chunk(3), found[4][0]]  # d_bias of one row is d_z

    d_sigmoid, *_ = backward(None, ones[None], s, ones, ones)
    *_, d_tanh = backward(ones[None], None, ones, ones, ones)
    _, _, d_elu, _ = backward(None, ones[None], ones, ones, e)
    return d_sigmoid, d_tanh, d_elu
