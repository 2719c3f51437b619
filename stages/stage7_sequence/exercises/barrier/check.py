import re

import torch

from common.exercises.judge import launched_once, require, same
from common.exercises.judging.programs import printed

THREADS = 64
ARRIVAL = r"(?:fetch_add|atomicAdd|atomicInc|\+\+|\+=|red\.)[^;]*;"
RELAXED = r"memory_order_relaxed|\batomic[A-Z]\w+\(|\bvolatile\b|\.relaxed"
POLLS = rf"\bwhile\s*\([^;{{]*(?:{RELAXED})[^;{{]*(?:\{{[^{{}}]*\}}|;)"  # its last load comes after its body
ACQUIRES = r"memory_order_(?:acquire|acq_rel|seq_cst)|_fence|__threadfence|\.acquire"


def check(work):
    code = work.code("barrier.cu")
    require("cooperative_groups" not in code, "the barrier uses cooperative groups: write it with the counter")
    numbers = work.numbers()
    for S, T in ((150, 4), (70, 3), (33, 2)):
        case = f"S={S}, T={T}"
        h = torch.randn(S, generator=numbers)
        weights = torch.randn(S, S, generator=numbers) / S**0.5
        got, counted = printed(work, "barrier.cu", [S, T, h, weights], (S + 1,), case)
        want = h.double()
        for _ in range(T):
            want = torch.tanh(weights.double() @ want)
        same("the state", got[:S], want, case, torch.float32, 1e-5)
        launched_once(counted, case)
        blocks = -(-S // THREADS)
        require(
            int(got[S]) == T * blocks,
            f"{case}: the counter ends at {int(got[S])}. {blocks} blocks arrive once at each of {T} barriers, which "
            f"makes {T * blocks}",
        )
        polled = [row for row in counted.rows if row.file.endswith("barrier.cu") and "atomic" in row.space]
        lanes, requests = (sum(getattr(row, name) for row in polled) for name in ("lanes", "requests"))
        require(
            lanes <= requests,
            f"{case}: the results are right, but {lanes / max(1, requests):.2g} threads of a warp access the counter "
            "at a time: one thread of a block arrives and waits, the others wait at __syncthreads",
        )
    # The emulator ignores scopes, and takes every atomic load as an acquisition: only the source shows these two
    # mistakes. It reports a race if an arrival has no release order.
    narrow = re.search(r"thread_scope_(?:block|thread)\b|\w+_block\(|\.cta\b", code)
    require(
        narrow is None,
        f"the results are right here, but {narrow and narrow[0].rstrip('(')} orders only threads of one block: "
        "the barrier is one of all blocks of the device",
    )
    wait = re.split(ARRIVAL, code.partition("__global__")[0], maxsplit=1)[-1]
    loop = re.search(r"\b(?:while|do|for)\b.*", wait, re.DOTALL)
    after = re.split(POLLS, loop[0] if loop else wait)[-1]
    require(
        not re.search(RELAXED, wait) or re.search(ACQUIRES, after),
        "the results are right here, but no load has acquire order, and no fence follows the loop: on a GPU, the "
        "reads of the next step may come before the wait",
    )
