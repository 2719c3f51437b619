import torch

from common.exercises.judge import enough_threads, launched_once, require, same
from common.exercises.judging.programs import printed


def check(work):
    numbers = work.numbers()
    for S, T, kind in ((70, 4, ""), (64, 3, ""), (33, 1, ""), (20, 3, ""), (40, 3, ", a state of zeros")):
        case = f"S={S}, T={T}{kind}"
        h = torch.zeros(S) if kind else torch.randn(S, generator=numbers)
        weights = torch.randn(S, S, generator=numbers) / S**0.5
        got, counted = printed(work, "steps.cu", [S, T, h, weights], (S,), case)
        states = [h.double()]
        for _ in range(T):
            states.append(torch.tanh(weights.double() @ states[-1]))
        suspects = {f"this is the state after {t} steps, not after {T}": states[t] for t in range(T)}
        same("the state", got, states[T], case, torch.float32, 1e-5, suspects)
        launched_once(counted, case)
        enough_threads(counted, S, case)
        stored, both = sum(launch.stored_bytes for launch in counted.launches) // 4, S * min(T, 2)
        require(
            stored >= both,
            f"{case}: the kernel stores to {stored} numbers, expected {both}: two buffers take turns, so that each "
            "step needs only one barrier",
        )
        least, written = 4 * T * S, counted.total("bytes", space="global store")
        require(
            written == least,
            f"{case}: right, but the kernel writes {written / 4 / S:g} states in {T} steps: each step writes one, to "
            "the buffer that the last one has not written",
        )
        read = counted.total("bytes", space="global load")
        least = 4 * T * S * S
        require(read >= least, f"{case}: the kernel reads {read:,} bytes, but {T} steps read at least {least:,}")
