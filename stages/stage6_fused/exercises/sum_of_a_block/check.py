import torch

from common.exercises.judge import OPERATORS, agree, cases, require, same, stored_once
from common.exercises.judging.launches import ORDERS, count_differences

SIZES = ((21, 70), (1, 40), (8, 129), (200, 300), (333, 5))  # B, S: one block in y up to B = 64, then several
DTYPES = (torch.float32, torch.float64, torch.float16)
WARPS = 8  # of a block
ADDS = ("sum", "add", "add_", "mm", "addmm", "mv", "copy_", "cumsum", "einsum", "matmul")


def check(work):
    probe, source = work.beside(OPERATORS), (work.numbers(), work.device)
    for B, S in SIZES:
        for dtype in DTYPES:
            compare(probe, fresh(B, S, dtype, *source), f"B={B}, S={S}, {str(dtype).removeprefix('torch.')}")
    infinite = fresh(21, 70, torch.float32, *source)
    infinite[0][3, 5] = torch.inf
    compare(probe, infinite, "B=21, S=70, float32, infinity in grad_h")
    by_the_kernel(work, probe, fresh(21, 70, torch.float32, *source))
    agree(work.cell(), cases(work))
    same_bits(work, [fresh(333, 70, dtype, *source) for dtype in (torch.float32, torch.float64)])


def fresh(B, S, dtype, numbers, device):
    """Arguments of pointwise_backward: grad_h, grad_cell, z, new_cell."""
    return [torch.randn(B, width, generator=numbers).to(device, dtype) for width in (S, S, 3 * S, S)]


def compare(probe, given, what):
    """d_bias is the sum of d_z, which the code given to the learner computes correctly."""
    d_z, d_bias, _ = probe.call("pointwise_backward", *given, [True, True])
    exact, warp = d_z.double(), torch.arange(len(d_z), device=d_z.device) % WARPS
    suspects = {
        f"the sum of warp {k} of a block, over the rows {k}, {k + WARPS}, ..., is missing": exact[warp != k].sum(0)
        for k in range(min(WARPS, len(d_z)))
    }
    suspects["these are the sums of one warp, over every 8th row"] = exact[warp == 0].sum(0)
    same("d_bias", d_bias, exact.sum(0), what, d_z.dtype, 32 * torch.finfo(d_z.dtype).eps, suspects)


def by_the_kernel(work, probe, given):
    """With one block in y, the block's sums are d_bias, and ATen has nothing to add up."""
    with work.counting() as counted:
        d_z, d_bias, _ = probe.call("pointwise_backward", *given, [True, False])
    stored_once(counted.kernels, d_z.nbytes + d_bias.nbytes, "d_z and d_bias of one block in y", "backward_kernel")
    sums = sorted({name for name in counted.calls if name.partition(".")[0] in ADDS})
    require(
        not sums or counted.kernels is None,
        f"right, but ATen's {', '.join(sums)} is called although one block in y has all rows and can add them up",
    )


def same_bits(work, each_given):
    """Whatever the order of the threads, the results have the same bits."""
    atomics = 0

    def bias_gradients():
        nonlocal atomics
        with work.counting() as counted:
            probe = work.beside(OPERATORS)
            found = [probe.call("pointwise_backward", *given, [True, True])[1] for given in each_given]
        atomics = counted.kernels.total("lanes", "backward_kernel", "shared atomic") if counted.kernels else 0
        return {str(d_bias.dtype).removeprefix("torch."): d_bias for d_bias in found}

    for dtype, differ in count_differences(work, bias_gradients).items():
        require(
            not differ,
            f"d_bias in {dtype} differs in its last bits when the same threads run in another order: {differ} "
            f"numbers in {len(ORDERS) - 1} runs"
            + (", because atomics add in the order in which the warps happen to arrive" if atomics else ""),
        )
