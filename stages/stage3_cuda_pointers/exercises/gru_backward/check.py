import torch

from common.exercises.judge import Failure, require, same, stored_once
from common.exercises.judging.programs import printed


def check(work):
    numbers = work.numbers()
    for B, S, device in ((3, 70, ""), (1, 33, ""), (70, 2, "maxGridSize.y=3")):
        case = f"B={B}, S={S}" + (f", a device with {device}" if device else "")
        shapes = ((B, 3 * S), (B, 3 * S), (B, S), (B, S))
        from_input, from_h, h, grad_h = (
            torch.randn(shape, generator=numbers, dtype=torch.float64).requires_grad_() for shape in shapes
        )
        from_input.data[0, 0] = -1000  # this reset gate is exactly 0
        from_h.data[0, 2 * S + 1] = 0  # so that a division by it is not possible
        grad_h.data[-1, -1] = 0
        new_h, gates = gru(from_input, from_h, h)
        want = torch.autograd.grad(new_h, (from_input, from_h, h), grad_h)
        got, counted = printed(
            work,
            "gru_backward.cu",
            [B, S, grad_h, gates, from_h, h],
            (B * 7 * S,),
            case,
            torch.float64,
            EMULATOR_DEVICE=device,
        )
        d_from_input, d_from_h, d_h = got.split([B * 3 * S, B * 3 * S, B * S])
        same("d_h", d_h.view(B, S), want[2], case, torch.float64, suspects={"this is grad_h, unchanged": grad_h})
        compare_gates("d_from_input", d_from_input.view(B, 3 * S), want[0], case, {})
        suspects = {"this is d_from_input: the candidate's part lacks the factor reset": want[0]}
        compare_gates("d_from_h", d_from_h.view(B, 3 * S), want[1], case, suspects)
        stored_once(counted, got.nbytes, case)
        read = counted.total("bytes", space="global load")
        require(
            read >= 6 * 8 * B * S, f"{case}: each unit's gradients depend on six numbers, but the kernel reads fewer"
        )


def gru(from_input, from_h, h):
    """Returns new_h (B, S) and the activated gates (B, 3S)."""
    (i_reset, i_update, i_candidate), (s_reset, s_update, s_candidate) = from_input.chunk(3, 1), from_h.chunk(3, 1)
    reset, update = torch.sigmoid(i_reset + s_reset), torch.sigmoid(i_update + s_update)
    candidate = torch.tanh(i_candidate + reset * s_candidate)
    return (1 - update) * candidate + update * h, torch.cat([reset, update, candidate], dim=1)


def compare_gates(name, got, want, case, suspects):
    """Compares two gradients, and reports which gates are wrong."""
    try:
        same(name, got, want, case, torch.float64, suspects=suspects)
    except Failure as failure:
        gates = ("reset", "update", "candidate")
        parts = zip(gates, got.chunk(3, 1), want.chunk(3, 1), strict=True)
        wrong = [gate for gate, g, w in parts if not torch.allclose(g, w, rtol=1e-9, atol=1e-12)]
        raise Failure(f"{failure}\nWrong for these gates: {', '.join(wrong)}") from None
