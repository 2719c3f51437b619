import torch

from common.exercises.judge import require, same, stored_once, unchanged
from common.exercises.judging.programs import printed

RESULTS = ("outputs", "d_x", "d_h0")


def check(work):
    unchanged(work, "sequence.cu", "Write the kernels in lengths.cuh: the program that launches them is given")
    numbers = work.numbers()
    for S, T, lengths, padding in (
        (33, 5, [5, 5], "numbers"),
        (7, 6, [2, 6, 3, 5], "numbers"),
        (12, 5, [0, 3, 5, 1], "numbers"),
        (7, 4, [1, 4, 0], "NaN"),
        (5, 6, [2, 3], "numbers"),
    ):
        case = f"S={S}, T={T}, lengths {lengths}, padding of {padding}"
        compare(work, case, *random_inputs(S, T, lengths, padding, numbers))
    nan_is_kept(work, *random_inputs(4, 3, [3, 2], "numbers", numbers))


def nan_is_kept(work, x, *others):
    """Raises `Failure` if NaN in a step that a row takes does not appear in its outputs."""
    x[1, 0, 2] = torch.nan
    T, B, S = x.shape
    case = f"S={S}, T={T}, NaN in step 1 of row 0, which has {T} steps"
    results, _ = printed(work, "sequence.cu", [T, B, S, x, *others], (2 * x.numel() + B * S,), case)
    outputs = results[: x.numel()].view(x.shape)
    require(
        bool(outputs[1, 0, 2].isnan()),
        f"{case}: outputs is {outputs[1, 0, 2]:.4g} at [1, 0, 2], expected NaN: only padding is ignored",
    )


def random_inputs(S, T, lengths, padding, numbers):
    """x, weights, h0, the gradients of the outputs, and the lengths."""
    shapes = ((T, len(lengths), S), (S, S), (len(lengths), S), (T, len(lengths), S))
    x, weights, h0, grad_outputs = (torch.randn(*shape, generator=numbers) for shape in shapes)
    lengths = torch.tensor(lengths)
    if padding == "NaN":
        x[torch.arange(T)[:, None] >= lengths] = torch.nan
    return x, weights / S**0.5, h0, grad_outputs, lengths


def compare(work, case, x, weights, h0, grad_outputs, lengths):
    """Raises `Failure` unless outputs and gradients are those of the loop in float64."""
    T, B, S = x.shape
    sizes = [T * B * S, T * B * S, B * S]
    arguments = [T, B, S, x, weights, h0, grad_outputs, lengths]
    results, counted = printed(work, "sequence.cu", arguments, (sum(sizes),), case)
    got = dict(zip(RESULTS, results.split(sizes), strict=True))
    for name in RESULTS if x.isnan().any() else ():
        require(
            not got[name].isnan().any(),
            f"{case}: {name} contains NaN. Past its length, a row must not compute with x: 0 times NaN is NaN",
        )
    precise = [tensor.double() for tensor in (x.nan_to_num(), weights, h0, grad_outputs)]
    want = reference(*precise, lengths)
    mistakes = typical_mistakes(*precise, lengths, want["outputs"])
    for name in RESULTS:
        suspects = {words: results[name] for words, results in mistakes.items() if name in results}
        same(name, got[name].view(want[name].shape), want[name], case, torch.float32, 1e-5, suspects)
    stored_once(counted, results.nbytes, case)


def reference(x, weights, h0, grad_outputs, lengths):
    """The results by name; the gradients are autograd's."""
    x, h0 = x.clone().requires_grad_(), h0.clone().requires_grad_()
    outputs = forward(x, weights, h0, lengths)
    gradients = torch.autograd.grad(outputs, (x, h0), grad_outputs)
    return dict(zip(RESULTS, (outputs.detach(), *gradients), strict=True))


def forward(x, weights, h, lengths, past="the state"):
    """The outputs. `past`: what those of a row past its length are, of the names below."""
    states = [h]
    for t, step in enumerate(x):
        choices = {"the state": states[-1], "zero": torch.zeros_like(h), "the state before": states[max(0, t - 1)]}
        states.append(torch.where(active(t, lengths), torch.tanh(step + states[-1] @ weights.T), choices[past]))
    return torch.stack(states[1:])


def backward(weights, outputs, grad_outputs, lengths, past="kept"):
    """The gradients by name. `past`: what a step past the length does with the gradient of the state."""
    d_h, d_x = torch.zeros_like(outputs[0]), []
    for t in reversed(range(len(outputs))):
        d_h = d_h + grad_outputs[t]
        d_z = d_h * (1 - outputs[t] ** 2)
        d_x.append(active(t, lengths) * d_z)
        choices = {"kept": d_h, "lost": torch.zeros_like(d_h), "multiplied": d_z @ weights}
        d_h = torch.where(active(t, lengths), d_z @ weights, choices[past])
    return {"d_x": torch.stack(d_x[::-1]), "d_h0": d_h}


def active(t, lengths):
    """[B,1]: whether a row takes step t."""
    return (t < lengths)[:, None]


def typical_mistakes(x, weights, h0, grad_outputs, lengths, outputs):
    """The wrong results of typical mistakes, by the message for them."""
    T = len(x)
    all_steps, one_more = torch.full_like(lengths, T), (lengths + 1).clamp(max=T)
    unchanged_buffer = (
        "past its length, a row shows the state before its last one: the buffer of the next step is old"
    )
    multiplied = "past the length of a row, the gradient of its state is multiplied by the weights"
    lost = "past the length of a row, the gradient of its state is lost: these outputs repeat the last state, too"
    return {
        "forward ignores the lengths": {"outputs": forward(x, weights, h0, all_steps)},
        "in forward, a row takes one step more": {"outputs": forward(x, weights, h0, one_more)},
        "a row past its length has zeros, but it should keep its state": {
            "outputs": forward(x, weights, h0, lengths, "zero")
        },
        unchanged_buffer: {"outputs": forward(x, weights, h0, lengths, "the state before")},
        "backward ignores the lengths": backward(weights, outputs, grad_outputs, all_steps),
        "in backward, a row takes one step more": backward(weights, outputs, grad_outputs, one_more),
        multiplied: backward(weights, outputs, grad_outputs, lengths, "multiplied"),
        lost: backward(weights, outputs, grad_outputs, lengths, "lost"),
    }
