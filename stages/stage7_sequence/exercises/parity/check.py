import math
import re

import torch

from common.exercises.judge import enough_threads, launched_once, require, same
from common.exercises.judging.programs import printed

BARRIER = r"(?:\.|::)\s*sync\s*\((?:[^()]|\(\))*\)"


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
        requests = counted.total("requests", space="global store")
        require(
            written // 4 >= 8 * requests,
            f"{case}: right, but the kernel stores {written / 4 / requests:.3g} numbers at a time. The 32 threads of "
            "a warp store together if each computes its own unit",
        )
        read = counted.total("bytes", space="global load")
        least = 4 * T * S * S
        require(read >= least, f"{case}: the kernel reads {read:,} bytes, but {T} steps read at least {least:,}")
    if len(re.findall(BARRIER, work.code("steps.cu"))) > 1:  # right if the loop computes two steps at a time
        one_for_each_step(work, 70, 4)


def one_for_each_step(work, S, T):
    """Runs a copy of the program in which every thread counts the barriers that it passes."""
    code = re.sub(BARRIER, r"\g<0>, atomicAdd(&passed, 1)", work.code("steps.cu"))
    file, case = work.folder / "counts_barriers.cu", f"S={S}, T={T}"
    file.write_text(f"#include <cuda_runtime.h>\n__device__ int passed;\n{code}", encoding="utf-8")
    try:
        _, counted = printed(work, file.name, [S, T, torch.zeros(S), torch.zeros(S, S)], (S,), case)
    finally:
        file.unlink()
    threads = sum(math.prod(launch.grid) * math.prod(launch.block) for launch in counted.launches)
    barriers = counted.total("lanes", space="global atomic") / threads
    require(
        barriers <= T + 1,  # one before the first step does no harm
        f"{case}: the results are right, but each thread waits at {barriers:g} barriers in {T} steps. One for each "
        "step is enough: it ensures that all blocks have read a buffer before the next step writes it again",
    )
