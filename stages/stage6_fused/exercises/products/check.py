import torch

from common.cell.case import input_gradients
from common.exercises.judge import agree, cases, require

SIZES = ((4, 32, 32), (5, 3, 65), (17, 5, 33), (1, 130, 16), (3, 0, 33), (16, 7, 70))  # B, I, S
DTYPES = (torch.float32, torch.float64)
NEEDS = (("weights",), ("input",), ("old_h",))


def check(work):
    cell = work.cell()
    agree(cell, cases(work))
    agree(cell, [work.case(*size, dtype=dtype) for size in SIZES for dtype in DTYPES])
    agree(cell, [work.case(16, 7, 70, requires_grad=needed) for needed in NEEDS])
    mine = read(work)
    if mine is None:
        return  # on a GPU
    with work.ours() as stage:
        ours = read(stage)
    require(
        mine <= 1.1 * ours,
        f"right, but the threads of products_kernel read {mine:,} numbers, where {ours:,} are enough: "
        f"{mine / ours:.3g} times as many. Has each warp steps of its own?",
    )


def read(work):
    """How many numbers the threads of the kernel read in one backward pass."""
    case = work.case(16, 32, 64)
    inputs, cell = case.inputs(), work.cell()
    results = cell(*inputs.values())
    with work.counting() as counted:
        input_gradients(results, inputs, case.gradients())
    if not counted.kernels:
        return None
    return counted.kernels.total("lanes", "products_kernel", "global load")
