import torch

from common.exercises.judge import (
    enough_threads,
    launched_once,
    no_idle,
    require,
    same,
    stored_once,
    wide_indices,
)
from common.exercises.judging.programs import printed

I = 5


def check(work):
    numbers = work.numbers()
    for B, S, device in (
        (3, 70, ""),
        (1, 33, ""),
        (2, 128, ""),
        (70, 2, "maxGridSize.y=3"),
        (2, 300, "maxGridSize.y=3"),
    ):
        case = f"B={B}, S={S}" + (f", a device with {device}" if device else "")
        cell = torch.nn.GRUCell(I, S, dtype=torch.float64)
        for parameter in cell.parameters():
            parameter.data = torch.randn(parameter.shape, generator=numbers, dtype=torch.float64) / 2
        cell.bias_ih.data[2 * S : 2 * S + 2] = torch.tensor([800, -800])  # exp overflows, of one sign or the other
        x, h = (torch.randn(B, size, generator=numbers, dtype=torch.float64) for size in (I, S))
        with torch.no_grad():
            want = cell(x, h)
            from_input = torch.nn.functional.linear(x, cell.weight_ih, cell.bias_ih)
            from_h = torch.nn.functional.linear(h, cell.weight_hh, cell.bias_hh)
        got, counted = printed(
            work, "gru.cu", [B, S, from_input, from_h, h], (B, S), case, torch.float64, EMULATOR_DEVICE=device
        )
        same("new_h", got, want, case, torch.float64, suspects=suspects(from_input, from_h, h))
        stored_once(counted, got.nbytes, case)
        launched_once(counted, case)
        if not device:
            enough_threads(counted, B * S, case)
        no_idle(counted, case, "blocks")
        read = counted.total("bytes", space="global load")
        require(
            read >= 7 * 8 * B * S,
            f"{case}: each element of new_h depends on seven numbers, but the kernel reads fewer",
        )
    wide_indices(work.code("gru.cu"), "gru_kernel", "row", "S")


def suspects(from_input, from_h, h):
    """Typical wrong values of new_h, by the description of the mistake."""

    def gru(reset_of=0, update_of=1, on_sum=False, exchanged=False):
        i, s = from_input.chunk(3, 1), from_h.chunk(3, 1)
        reset, update = torch.sigmoid(i[reset_of] + s[reset_of]), torch.sigmoid(i[update_of] + s[update_of])
        candidate = torch.tanh(reset * (i[2] + s[2]) if on_sum else i[2] + reset * s[2])
        update = 1 - update if exchanged else update
        return (1 - update) * candidate + update * h

    i, s = from_input.chunk(3, 1), from_h.chunk(3, 1)
    without = torch.sigmoid(i[1] + s[1])
    return {
        "update and 1 - update are exchanged": gru(exchanged=True),
        "reset is multiplied by the whole sum, but it applies only to from_h's part": gru(on_sum=True),
        "the reset gate and the update gate are exchanged": gru(1, 0),
        "reset is not used": (1 - without) * torch.tanh(i[2] + s[2]) + without * h,
        "this is h, unchanged": h,
    }
