import torch

from common.cell.case import input_gradients
from common.exercises.judge import Failure, agree, cases, no_idle, require, same, stored_once
from common.exercises.judging.launches import ORDERS, count_differences

SIZES = ((4, 32, 32), (5, 3, 65), (17, 5, 33), (1, 130, 16), (3, 0, 33), (16, 7, 70), (0, 5, 3))  # B, I, S
DTYPES = (torch.float32, torch.float64)
DEEP = (16, 250, 250)  # its sums have so many terms that rounding each of them to 16 bits shows
GRADIENTS = ("d_weights", "d_input", "d_old_h")
NEEDS = (("weights",), ("input",), ("old_h",))


def check(work):
    cell = work.cell()
    agree(cell, cases(work))
    agree(cell, [work.case(*size, dtype=dtype) for size in SIZES for dtype in DTYPES])
    agree(cell, [work.case(16, 7, 70, requires_grad=needed) for needed in NEEDS])
    zero_times_infinity(work)
    same_bits(work)
    in_the_order_of_the_warps(work)
    sums_in_float(work)
    case = work.case(16, 32, 64)
    mine = backward(work, case)
    if mine.kernels is None:
        return  # on a GPU
    with work.ours() as stage:
        ours = backward(stage, case)
    results = (case.B + 3 * case.S) * (case.S + case.I) * case.dtype.itemsize  # d_X and d_weights
    stored_once(mine.kernels, results, "backward", "products_kernel")
    no_idle(mine.kernels, f"backward, {case}", "warps")
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


def zero_times_infinity(work):
    """Gradients are NaN where those of the stage are, for infinite numbers in the input and in a gradient."""
    case = work.case(17, 7, 70)  # the sums for d_weights have a second round of steps, for one warp only
    inputs, given = case.inputs(), case.gradients()
    inputs["input"].data[-1, -1] = torch.inf
    given[1][-1] = torch.inf
    for name, *gradients in gradients_of_both(work, inputs, given):
        mine, want = (int(one.isnan().sum()) for one in gradients)
        added = "nothing may be added past the last step, not even a product with 0"
        require(
            mine == want,
            f"with infinity in the last row of grad_cell and of the input, {mine} numbers of {name} are NaN, "
            f"expected {want} ({case}): 0 times infinity is NaN, so "
            f"{'no step may be left out' if mine < want else added}",
        )


def same_bits(work):
    """Whatever the order of the threads, the sums of the warps are added in the order of the warps."""
    case = work.case(17, 5, 33)

    def gradients():
        inputs = case.inputs()
        return input_gradients(work.cell()(*inputs.values()), inputs, case.gradients())

    differ = count_differences(work, gradients)
    for name in GRADIENTS:
        require(
            not differ[name],
            f"{name} differs in its last bits when the same threads run in another order: {differ[name]} numbers in "
            f"{len(ORDERS) - 1} runs. Does one thread add up the 16 sums of each number, in the order of the warps?",
        )


def in_the_order_of_the_warps(work):
    """Rounding shows in which order the sums of the warps are added: large, -large and 1 give 1, or 0."""
    case = work.case(3, 5, 33, dtype=torch.float32)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    inputs["weights"][:, case.S :] = 0  # so that all rows of d_z are equal
    for name in ("old_h", "old_cell"):
        inputs[name] = inputs[name][:1].repeat(case.B, 1)
    inputs["input"][:, :2] = torch.tensor([[2.0**30, 0], [-(2.0**30), 0], [1, 1]])
    inputs = {name: tensor.requires_grad_() for name, tensor in inputs.items()}
    gradients = [torch.ones_like(inputs["old_h"])] * 2
    d_weights = input_gradients(work.cell()(*inputs.values()), inputs, gradients)["d_weights"]
    require(
        torch.equal(d_weights[:, case.S], d_weights[:, case.S + 1]),
        "the sums of the warps are right up to rounding, but one thread adds them in another order than that of the "
        "warps: from threadIdx.y = 0 on",
    )


def sums_in_float(work):
    """For bfloat16, results are those of the stage, whose sums are rounded once: at most their last bit differs."""
    case = work.case(*DEEP, dtype=torch.bfloat16)
    for name, mine, want in gradients_of_both(work, case.inputs(), case.gradients()):
        said = "These are the gradients with sums that are kept in bfloat16 or rounded more than once: use math_t"
        tolerance = torch.finfo(case.dtype).eps
        try:
            same(name, mine, want, f"{case}", case.dtype, tolerance_=tolerance)
        except Failure as failure:
            raise Failure(f"{failure}\n{said}") from None


def gradients_of_both(work, inputs, given):
    """The name of each gradient, the learner's, and that of the stage."""
    found = []
    with work.ours() as stage:
        for of in (work, stage):
            found.append(input_gradients(of.cell()(*inputs.values()), inputs, given))
    return [(name, *(gradients[name] for gradients in found)) for name in GRADIENTS]


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
