import torch

from common.exercises.judge import CALLS, require, same
from common.exercises.judging.repeats import results_kept

EACH_STEP, BESIDE = 5, 10


def check(work):
    sequence = work.load("_C").sequence
    numbers = work.numbers()
    for T, B, I, S in ((7, 3, 5, 33), (4, 1, 1, 70), (1, 5, 3, 1)):
        for dtype in (torch.float32, torch.float64):
            values(sequence, arguments(numbers, T, B, I, S, dtype))
    given = inputs, weights, bias, h0 = arguments(numbers, 5, 4, 6, 8, torch.float64)
    values(sequence, (inputs.transpose(0, 1).contiguous().transpose(0, 1), weights.t().contiguous().t(), bias, h0))
    for k, one in enumerate(given):
        for strided in (one.transpose(0, -1).contiguous().transpose(0, -1), torch.stack([one, -one], -1)[..., 0]):
            values(sequence, (*given[:k], strided, *given[k + 1 :]))
    counts(work, sequence, numbers)
    calls = [arguments(numbers, 7, 3, 5, 33, torch.float32) for _ in range(2)]
    results_kept(work, "_C.sequence", ["outputs"], *calls)
    after_a_step(work, *calls)


def arguments(numbers, T, B, I, S, dtype):
    shapes = ((T, B, I), (2 * S, S + I), (2 * S,), (B, S))
    inputs, weights, bias, h0 = (torch.randn(shape, generator=numbers, dtype=torch.float64) for shape in shapes)
    return tuple(one.to(dtype) for one in (inputs, weights / (S + I) ** 0.5, bias, h0))


def values(sequence, given):
    """Compares the outputs with those of the formulas, and names likely mistakes."""
    inputs, weights, bias, h0 = (one.double() for one in given)
    want = by_formula(inputs, weights, bias, h0)
    swapped = torch.cat([weights[:, h0.size(1) :], weights[:, : h0.size(1)]], dim=1)
    exchanged = [torch.cat(one.chunk(2)[::-1]) for one in (weights, bias)]
    suspects = {
        "update and candidate are exchanged": by_formula(inputs, *exchanged, h0),
        "each step starts from h0, not from the previous state": torch.cat(
            [by_formula(input[None], weights, bias, h0) for input in inputs]
        ),
        "every step shows the last state: all outputs share the same memory": want[-1:].expand_as(want),
        "update and 1 - update are exchanged": by_formula(inputs, weights, bias, h0, keep=False),
    }
    if inputs.size(2) != h0.size(1):
        suspects["h and the input are in the wrong order"] = by_formula(inputs, swapped, bias, h0)
    T, B, I = inputs.shape
    about = f"T={T}, B={B}, I={I}, S={h0.size(1)}, {given[0].dtype}"
    for name, one in zip(("inputs", "weights", "bias", "h0"), given, strict=True):
        about += "" if one.is_contiguous() else f", {name} is not contiguous: its strides are {one.stride()}"
    tolerance = 2000 * T * torch.finfo(given[0].dtype).eps
    same("outputs", sequence(*given), want, about, given[0].dtype, tolerance_=tolerance, suspects=suspects)


def by_formula(inputs, weights, bias, h, keep=True):
    outputs = []
    for input in inputs:
        update, candidate = (torch.cat([h, input], dim=1) @ weights.T + bias).chunk(2, dim=1)
        update, candidate = torch.sigmoid(update), torch.tanh(candidate)
        h = update * h + (1 - update) * candidate if keep else (1 - update) * h + update * candidate
        outputs.append(h)
    return torch.stack(outputs)


def counts(work, sequence, numbers):
    """Counts ATen calls at two lengths, which gives those of each step and those outside the loop."""
    calls = {}
    for T in (5, 25):
        given = arguments(numbers, T, 3, 4, 6, torch.float32)
        with work.counting() as counted:
            sequence(*given)
        calls[T] = counted.all_calls
    each = (calls[25] - calls[5]) / 20
    listed = ", ".join(f"{name} {times}" for name, times in sorted(counted.calls.items()))
    require(
        each <= EACH_STEP,
        f"each step calls ATen {each:.3g} times, not counting views; {EACH_STEP} are enough. "
        f"All calls for 25 steps: {listed}",
    )
    beside = calls[5] - 5 * each
    require(beside <= BESIDE, f"outside the steps, ATen is called {beside:.0f} times; {BESIDE} are enough")


def after_a_step(work, first, second):
    """Nothing may be kept of the arguments: their numbers may change in place."""
    got = work.beside(CALLS).after_change("_C", "sequence", list(first), list(second))
    want = by_formula(*(one.double() for one in second))
    tolerance = 2000 * len(second[0]) * torch.finfo(torch.float32).eps
    case = "a second call, after the arguments of the first were changed in place, as an optimizer does"
    kept = {"these are the outputs of the first call": by_formula(*(one.double() for one in first))}
    same("outputs", got, want, case, torch.float32, tolerance_=tolerance, suspects=kept)
