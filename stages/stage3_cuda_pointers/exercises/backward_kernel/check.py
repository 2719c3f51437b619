import re

import torch

from common.exercises.judge import Failure, LearnerError, agree, cases, require, same, wide_indices
from common.exercises.judging.launches import ROWS, large_batch, whole_warps

MISSING = {"h only": ("new_cell", "grad_cell"), "cell only": ("new_h", "grad_h")}
# A parameter or variable of 32 bits, such as `int row`; blockIdx.y has 32 bits, too.
NARROW = r"(?<!long )\b(?:(?:unsigned\s+)?(?:int|u?int32_t)|unsigned|auto(?=\s+\w+\s*=\s*blockIdx\.y\s*;))\s+(\w+)"


def check(work):
    cell, each = work.cell(), cases(work)
    agree(cell, [case for case in each if case.grads not in MISSING])
    for case in each:
        if case.grads in MISSING:
            with_a_null_pointer(cell, case)
    with_an_infinite_candidate(work)
    work.by_kernels()
    whole_warps(work, "backward_kernel")
    large_batch(work)
    for grads in MISSING:
        with_a_null_pointer(cell, work.case(ROWS, 1, 1, grads=grads))
    wide_indices(work.code("csrc/lltm_kernel.cu"), "row", "state_size")
    wide_products(work.code("csrc/lltm_kernel.cu"))


def with_an_infinite_candidate(work):
    """An infinite candidate cell has the derivative 1: a product with a mask would be 0 * infinity."""
    half = torch.full((1, 33), 0.5, device=work.device)
    gates, S = torch.cat([half, half, half / 0], 1), half.size(1)
    weights, X = half.new_zeros(3 * S, S + 1), half.new_zeros(1, S + 1)
    _, _, d_bias, *_ = work.load("_C").backward(None, half, weights, X, gates, half, [True] * 5)
    want = torch.full((S,), 0.25)
    same("d_z of the candidate cell", d_bias.chunk(3)[2], want, "an infinite candidate cell: its derivative is 1")


def with_a_null_pointer(cell, case):
    """One result has no gradient, so the kernel gets a null pointer."""
    try:
        agree(cell, [case])
    except (Failure, LearnerError) as error:
        result, pointer = MISSING[case.grads]
        raise Failure(
            f"{str(error).strip()}\nHere {result} has no gradient, so {pointer} is a null pointer. Treat it as "
            "zeros: compare the pointer with nullptr before each read, do not change it, and compute everything else "
            "as usual"
        ) from None


def wide_products(code):
    """Checks that no index is computed as a product of 32-bit numbers only: the product has 32 bits, too."""
    kernel = "".join(re.findall(r"\bbackward_kernel\(.*?^}", code, re.DOTALL | re.MULTILINE))
    rows = {"blockIdx.y", "gridDim.y", *re.findall(rf"{NARROW}\s*=[^;]*blockIdx\.y", kernel)}
    number = rf"(?:{'|'.join([*rows, *re.findall(NARROW, kernel), r'[0-9]+'])})\b"
    factor = rf"(?:{number}|\({number}(?:[-+*]{number})+\))"
    kernel = re.sub(r"\s*([-+*/%()])\s*", r"\1", kernel)
    for product in re.findall(rf"(?<![\w.)*/%]){factor}(?:\*{factor})+", kernel):
        names = dict.fromkeys(re.findall(r"[A-Za-z_][\w.]*", product))
        require(
            len(names) < 2 or not rows & names.keys(),
            f"the results are right, but {' and '.join(names)} have 32 bits, and so has their product, which exceeds "
            "2**31 for a large tensor, even if it is stored in 64 bits: use int64_t, as in 3/index_of_64_bits",
        )
