import torch

from common.exercises.judge import require, same, stored_once, unchanged
from common.exercises.judging.programs import printed

ORDERS = ("1", "2", "3")  # in which the emulator runs blocks and threads
FILE = "reduce_scatter.cuh"


def check(work):
    unchanged(work, "backward.cu", f"Write the function in {FILE}: the kernel that calls it is given")
    numbers = work.numbers()
    for S, blocks, T, kind in (
        (70, 4, 4, ""),
        (70, 2, 2, ""),
        (64, 8, 3, ""),
        (5, 4, 3, ""),
        (24, 3, 4, ", zeros are sent in one step"),
    ):
        case = f"T={T}, S={S}, {blocks} blocks{kind}"
        weights, outputs, grads = (torch.randn(*shape, generator=numbers) for shape in ((S, S), (T, S), (T, S)))
        given = weights / S**0.5, outputs.tanh(), grads
        if kind:
            given[1][1] = 1  # the derivative of tanh is 0 there
        arguments = [T, S, blocks, *given]
        runs = [printed(work, "backward.cu", arguments, (T * S + S,), case, EMULATOR_SEED=order) for order in ORDERS]
        got, counted = runs[0]
        precise = [tensor.double() for tensor in given]
        want = backward(*precise)
        suspects = {words: backward(*precise, exchange) for words, exchange in typical_mistakes(S, blocks).items()}
        for name, one, right in zip(("d_x", "d_h0"), got.split([T * S, S]), want, strict=True):
            wrong = {words: results[name == "d_h0"] for words, results in suspects.items()}
            same(name, one.view(right.shape), right, case, torch.float32, 1e-5, wrong)
        stored_once(counted, got.nbytes, case)
        atomics = sum(row.lanes for row in counted.rows if row.space.endswith("atomic"))
        require(
            not atomics,
            f"{case}: the results are right, but atomics add in the order of arrival: the last bits change from run "
            "to run",
        )
        changed = max(int((other != got).sum()) for other, _ in runs)
        require(not changed, f"{case}: {changed} numbers change if the blocks run in another order")
        economical(counted, S, blocks, T, case)


def economical(counted, S, blocks, T, case):
    """Raises `Failure` if blocks read the parts of other blocks' units, or if one thread does all the work."""
    rows = [row for row in counted.rows if row.file.endswith(FILE) and row.space == "shared load"]
    loads, requests = sum(row.lanes for row in rows), sum(row.requests for row in rows)
    least = blocks * S * T
    require(
        loads <= 3 * least,
        f"{case}: the results are right, but the blocks read {loads:,} numbers where {least:,} are enough. Each "
        "block needs only the sums of its own units",
    )
    require(
        S < 2 * 32 or loads >= 4 * requests,
        f"{case}: the results are right, but only {loads / max(1, requests):.2g} of the 32 threads of a warp read at "
        "a time",
    )


def backward(weights, outputs, grads, exchange=None):
    """d_x and d_h0, by the loop. `exchange` makes d_h from the parts of all blocks' rows, (S, S)."""
    exchange = exchange or (lambda parts: parts.sum(0))
    d_h, d_x = torch.zeros(len(weights), dtype=weights.dtype), []
    for t in reversed(range(len(outputs))):
        d_x.append((d_h + grads[t]) * (1 - outputs[t] ** 2))
        d_h = exchange(d_x[-1][:, None] * weights)
    return torch.stack(d_x[::-1]), d_h


def typical_mistakes(S, blocks):
    """What d_h becomes, by the message for the mistake. `parts[i, k]` is what unit i adds to the sum of unit k."""
    units = -(-S // blocks)
    owner = torch.arange(S) // units
    is_own = owner[:, None] == owner
    shifted = torch.arange(S) % units
    return {
        "each block uses only its own part": lambda parts: (parts * is_own).sum(0),
        "a block's own part is missing": lambda parts: (parts * ~is_own).sum(0),
        "every block has the sums of block 0's units": lambda parts: parts.sum(0)[shifted],
        "the last block's part is missing": lambda parts: parts[owner < blocks - 1].sum(0),
    }
