import torch

from common.cell.case import input_gradients
from common.exercises.judge import agree, cases, require, stored_once
from common.exercises.judging.kernels import no_idle_warp
from common.exercises.judging.launches import ORDERS, count_differences

SIZES = ((4, 32, 32), (5, 3, 65), (17, 5, 33), (1, 130, 16), (3, 0, 33), (16, 7, 70))  # B, I, S
DTYPES = (torch.float32, torch.float64)
NEEDS = (("weights",), ("input",), ("old_h",))


def check(work):
    cell = work.cell()
    agree(cell, cases(work))
    agree(cell, [work.case(*size, dtype=dtype) for size in SIZES for dtype in DTYPES])
    agree(cell, [work.case(16, 7, 70, requires_grad=needed) for needed in NEEDS])
    same_bits(work)
    case = work.case(16, 32, 64)
    mine = backward(work, case)
    if mine.kernels is None:
        return  # on a GPU
    with work.ours() as stage:
        ours = backward(stage, case)
    results = (case.B + 3 * case.S) * (case.S + case.I) * case.dtype.itemsize  # d_X and d_weights
    stored_once(mine.kernels, results, "backward", "products_kernel")
    no_idle_warp(mine.kernels, f"backward, {case}")
    others = sorted(mine.calls.keys() - ours.calls.keys())
    require(
        not others,
        f"right, but backward calls ATen's {', '.join(others)}, which is not necessary: products_kernel computes all "
        "three products",
    )
    enough, reads = read(ours), read(mine)
    require(
        reads <= 1.1 * enough,
        f"right, but the threads of products_kernel read {reads:,} numbers; {enough:,} would be enough. That is "
        f"{reads / enough:.3g} times as many. Does each warp take its own steps?",
    )
    sectors = [counted.kernels.total("sectors", "products_kernel", "global load") for counted in (mine, ours)]
    require(
        sectors[0] <= 1.1 * sectors[1],
        f"right, but the warps of products_kernel read {sectors[0]:,} sectors of 32 bytes; {sectors[1]:,} would be "
        "enough. Do neighbouring lanes read neighbouring numbers?",
    )


def same_bits(work):
    """Whatever the order of the threads, the sums of the warps are added in the order of the warps."""
    case = work.case(17, 5, 33)

    def gradients():
        inputs = case.inputs()
        return input_gradients(work.cell()(*inputs.values()), inputs, case.gradients())

    differ = count_differences(work, gradients)
    for name in ("d_weights", "d_input", "d_old_h"):
        require(
            not differ[name],
            f"{name} differs in its last bits when the same threads run in another order: {differ[name]} numbers in "
            f"{len(ORDERS) - 1} runs. Does one thread add up the 16 sums of each number, in the order of the warps?",
        )


def backward(work, case):
    """What one backward pass calls, and what its kernels read and store."""
    inputs, cell = case.inputs(), work.cell()
    results = cell(*inputs.values())
    with work.counting() as counted:
        input_gradients(results, inputs, case.gradients())
    return counted


def read(counted):
    """How many numbers the threads of the kernel read."""
    return counted.kernels.total("lanes", "products_kernel", "global load")
