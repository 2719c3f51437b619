import re
from dataclasses import replace
from pathlib import Path

import torch

from common.cell.case import INPUTS
from common.exercises.judge import OPERATORS, SMALL, agree, cases, require, same
from common.exercises.judging.repeats import call_in_between, nothing_kept, results_kept

WASTE = {
    "it copies old_h and input, and two products need no copy": ("cat", "concat"),
    "a tensor whose values are written anyway does not have to be filled first": (
        "zeros",
        "zero",
        "zeros_like",
        "new_zeros",
        "ones",
        "new_ones",
        "full",
        "new_full",
        "fill",
    ),
    "a product can read a view, and write into one": ("copy", "clone", "contiguous", "_to_copy"),
    "addmm can add to existing values": ("add", "sub"),
}
PRODUCTS = ("mm", "addmm", "addmm_")
RESULTS = ("new_h", "new_cell", *(f"d_{name}" for name in INPUTS))
NEEDS = (INPUTS, ("weights", "bias"), *((name,) for name in INPUTS))


def check(work):
    probe = work.beside(OPERATORS)
    for dtype in (torch.float64, torch.float32):
        z_is_right(work, probe, dtype)
    agree(work.cell(), cases(work))
    agree(work.cell(), [work.case(*SMALL, requires_grad=needed) for needed in NEEDS])
    gradients_of_products(work, probe)
    require(
        len(re.findall(r"if\s*\(\s*joins\(", work.code("csrc/lltm.cpp"))) == 2,
        "the results are right, but a line with joins(input) is missing: on a GPU a single product is faster",
    )
    operations = work.beside(Path(__file__).with_name("operations.py"))
    case = work.case(*SMALL)
    calls = [list(one.inputs().values()) for one in (case, replace(case, seed=case.seed + 1))]
    results_kept(work, "lltm.lltm", RESULTS, *calls)
    nothing_kept(work, "lltm.lltm", case)
    call_in_between(work, work.cell())
    for needed in NEEDS:
        no_waste(work, operations, needed)
    no_waste(work, operations, INPUTS, by_columns=("input", "old_h"))


def z_is_right(work, probe, dtype):
    """z is right, before anything is computed from it."""
    case = work.case(*SMALL, dtype=dtype)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    z = probe.call("cell", *inputs.values())[2]
    input, weights, bias, old_h, _ = (tensor.double() for tensor in inputs.values())
    of_h, of_input = old_h @ weights[:, : case.S].t(), input @ weights[:, case.S :].t()
    suspects = {
        "the bias is added twice": of_h + of_input + 2 * bias,
        "the bias is not added": of_h + of_input,
        "the product with input is missing": of_h + bias,
        "the product with old_h is missing": of_input + bias,
    }
    same("z", z, of_h + of_input + bias, case, suspects=suspects)


def gradients_of_products(work, probe):
    """cell_backward returns only the needed half of d_X, and strides as its fake kernel declares."""
    B, I, S = SMALL
    case = work.case(*SMALL)
    input, weights, _, old_h, _ = given = [tensor.detach() for tensor in case.inputs().values()]
    _, new_cell, z = probe.call("cell", *given)
    for needed, columns in (("input", I), ("old_h", S)):
        needs = [name == needed for name in INPUTS]
        got = probe.call("cell_backward", *case.gradients(), input, weights, old_h, new_cell, z, needs)
        require(got[0] is not None, f"d_X is undefined, but {needed} needs a gradient")
        require(
            tuple(got[0].shape) == (B, columns),
            f"d_X has shape {tuple(got[0].shape)} where only {needed} needs a gradient, expected {(B, columns)}: "
            "the product with the other columns of weights is not needed",
        )
    d_weights = probe.call(
        "cell_backward", *case.gradients(), input, weights, old_h, new_cell, z, [True] * len(INPUTS)
    )[1]
    require(
        d_weights.is_contiguous(),
        f"d_weights has the strides {d_weights.stride()}, but the fake kernel declares a contiguous tensor, which "
        "torch.compile relies on",
    )


def no_waste(work, operations, needed, by_columns=()):
    """No operation could be left out, and no more products are computed than needed."""
    case = work.case(*SMALL, requires_grad=needed)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    inputs |= {name: inputs[name].t().contiguous().t() for name in by_columns}
    places = [INPUTS.index(name) for name in needed]
    found = operations.passes(places, places, list(case.gradients()), *inputs.values())
    of_X, of_weights = bool({"input", "old_h"} & set(needed)), 2 * ("weights" in needed)
    columns = case.S * ("old_h" in needed) + case.I * ("input" in needed)  # of d_X
    all_columns = case.S + case.I
    for name, enough, wide in (
        ("forward", 2, all_columns),
        ("backward", of_X + of_weights, columns + all_columns * ("weights" in needed)),
    ):
        what = f"with gradients for {', '.join(needed)}" if len(needed) < len(INPUTS) else "with all gradients"
        for why, wasteful in WASTE.items():
            for called in found[name]["own"]:
                require(called.removesuffix("_") not in wasteful, f"{name} {what} calls {called}: {why}")
        copying = " and ".join(f"{called}, which calls {copy}" for called, copy in found[name]["copying"].items())
        require(not copying, f"{name} {what} calls {copying}: a product can read a view, and write into one")
        products = sum(found[name]["all"].get(product, 0) for product in PRODUCTS)
        require(products <= enough, f"{name} {what} computes {products} products; {enough} would be enough")
        least, made = 3 * case.B * case.S * wide, found[name]["multiplications"]
        require(
            made <= least,
            f"{name} {what} makes {made:,} multiplications, but {least:,} are enough: which columns of weights does "
            "the product need? Do not compute columns that are cut off afterwards",
        )
