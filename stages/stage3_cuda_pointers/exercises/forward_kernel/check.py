import re

import torch

from common.exercises.judge import agree, cases, require, same, wide_indices
from common.exercises.judging.launches import large_batch

# A parameter or variable of 32 bits, such as `int row`; blockIdx.y has 32 bits, too.
NARROW = r"(?<!long )\b(?:(?:unsigned\s+)?(?:int|u?int32_t)|unsigned|auto(?=\s+\w+\s*=\s*blockIdx\.y\s*;))\s+(\w+)"


def check(work):
    agree(work.cell(), cases(work), gradients=False)
    for case in cases(work)[:4]:
        inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
        *_, X, gates = work.load("_C").forward(*inputs.values())
        z = X.double() @ inputs["weights"].double().t() + inputs["bias"].double()
        z_i, z_o, z_g = z.chunk(3, dim=1)
        want = torch.cat([z_i.sigmoid(), z_o.sigmoid(), torch.nn.functional.elu(z_g)], dim=1)
        same("gates", gates, want, case, suspects={"this is z, but backward needs the activated gates": z})
    near_zero(work)
    work.by_kernels()
    large_batch(work, lambda case: agree(work.cell(), [case], gradients=False))
    wide_indices(work.code("csrc/lltm_kernel.cu"), "row", "state_size")
    wide_products(work.code("csrc/lltm_kernel.cu"))


def near_zero(work):
    """The candidate cell keeps its digits where z is small: exp(z) - 1 loses them."""
    z = -1e-6
    input, weights, bias, old_h, old_cell = (tensor.detach() for tensor in work.case(3, 5, 70).inputs().values())
    gates = work.load("_C").forward(input, weights * 0, bias * 0 + z, old_h, old_cell)[-1]
    error = (gates[:, 140:].double() / torch.tensor(z).double().expm1() - 1).abs().max().item()
    require(
        error < 1e-3,
        f"the candidate cell is wrong by {error:.0%} at z = {z}, in float32: exp(z) - 1 loses the digits of a small "
        "z; elu in lltm_math.h uses expm1",
    )


def wide_products(code):
    """Checks that no index is computed as a product of 32-bit numbers only: the product has 32 bits, too."""
    kernel = "".join(re.findall(r"\bforward_kernel\(.*?^}", code, re.DOTALL | re.MULTILINE))
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
