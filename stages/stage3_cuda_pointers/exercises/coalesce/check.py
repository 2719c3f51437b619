import re

import torch

from common.exercises.judge import Failure, find_host_calls, require, same
from common.exercises.judging.programs import printed

MANY = 40_000  # more elements than a small grid computes
FEW = (1, 2, 3)  # elements
NARROW = r"(?<!long )\b(?:int|unsigned(?:\s+int)?|u?int32_t)\s+"  # a type of 32 bits
DECLARED = rf"{NARROW}(\w+(?:\s*=[^;,()]*)?(?:,\s*\w+\s*=[^;,()]*)*)"
LOST = "this is exp(x) - 1 computed directly, which loses the digits of an x near zero"


def check(work):
    on_the_host = find_host_calls(work.code("elu.cu", strings=False), "exp", "expm1")
    require(not on_the_host, f"host code calls {' and '.join(on_the_host)}: the kernel computes all values")
    require_wide_indices(work.code("elu.cu", strings=False).partition("int main")[0])
    numbers = work.numbers()
    for about in (3000, 1000, 0, *FEW, MANY):
        count = about if about in FEW else about + int(torch.randint(1, 100, (), generator=numbers))
        case = f"count={count}"
        x = torch.randn(count, generator=numbers)
        near_zero = torch.arange(count) % 4 == 0
        x[near_zero] *= 1e-4
        x[1:4] = torch.tensor([torch.nan, torch.inf, -torch.inf])[: count - 1]
        if about == MANY:  # short words, since a command line and a program's output have limits
            x = torch.randint(1, 9, (count,), generator=numbers).float()
        got, counted = printed(work, "elu.cu", [x], (count,), case)
        want = torch.nn.functional.elu(x.double())
        same("out", got, want, case, torch.float32, suspects={"this is x": x})
        lost = torch.exp(x[near_zero]) - 1
        same("out near zero", got[near_zero], want[near_zero], case, torch.float32, suspects={LOST: lost})
        stored, used = (counted.total("bytes", space=space) / 4 for space in ("global store", "global load"))
        if stored < count or used < count:
            raise Failure(f"{case}: the kernel does not access every element. Which thread computes the others?")
        if stored > count:
            raise Failure(
                f"{case}: right, but the kernel stores {stored:,.0f} results: some are computed more than once"
            )
        sectors, needed = counted.total("sectors", space="global"), 2 * -(-count // 8)
        if sectors > 1.05 * needed + 2:
            table = str(counted)
            raise Failure(
                f"{case}: right, but {sectors:,} sectors are moved, and the numbers fill only {needed:,}\n{table}"
            )


def require_wide_indices(code):
    """Raises `Failure` if the device code computes an element's number in 32 bits: no test has that many elements."""
    names = [part.split("=")[0].strip() for found in re.findall(DECLARED, code) for part in found.split(",")]
    dense = re.sub(r"\s*([-+*/%()=<])\s*", r"\1", code)
    factor = rf"(?:(?:blockIdx|gridDim|blockDim|threadIdx)\.x|[0-9]+[uU]?|{'|'.join([*names, 'blockDim.x'])})"
    blocks = {"blockIdx.x", "gridDim.x", *re.findall(rf"{NARROW}(\w+)=[^;,]*(?:blockIdx|gridDim)\.x", dense)}
    products = re.findall(rf"(?<![\w.)*]){factor}(?:\*{factor})+(?![\w(.])", dense)
    narrow = [product for product in products if blocks & set(product.split("*"))]
    either = "|".join([*names, "blockDim.x"])
    narrow += re.findall(rf"{NARROW}(\w+)=[^;,]*(?:blockIdx|gridDim)\.x[^;,]*\*", dense)
    narrow += re.findall(rf"\b({either})<=?count\b", dense) + ["count"] * ("count" in names)
    named = " and ".join(dict.fromkeys(narrow)).replace("*", " * ")
    require(
        not narrow,
        f"the kernel computes {named} in 32 bits, but count has 64: the results are wrong for a count that does not "
        "fit into 32 bits. Use int64_t, and convert a factor before it is multiplied, as in 3/index_of_64_bits",
    )
