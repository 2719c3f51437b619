"""What an installed wheel of the cell is put through: `PYTHON -m common.studies.wheels.smoke_test PACKAGE DEVICE`.

It runs where the wheel will be used: without a compiler, with another torch or another Python. So it imports only
torch, the package and the reference. It prints JSON before and after each check: a wheel for another torch may crash.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from types import ModuleType

import torch

from ...cell.case import LAYOUTS, Case, Cell, difference, outputs

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def run_checks(package: str, device: str) -> int:
    """Runs every check that applies to the package; always returns 0."""
    if not try_check("imported", importlib.import_module, package):
        return 0
    lltm, library = sys.modules[package].lltm, sys.modules[f"{package}._C"]
    registers_operators = hasattr(library, "NAMESPACE")  # false for a package bound by pybind11
    try_check("values", check_values, lltm, device, DTYPES if registers_operators else DTYPES[:2])
    if registers_operators:
        try_check("operators", check_operators, getattr(torch.ops, library.NAMESPACE), device)
        try_check("compiled", check_compiled, lltm, device)
        try_check("autocast", check_autocast, lltm, device)
    return 0


def try_check(name: str, check: Callable, *arguments: object) -> bool:
    """Whether a check raised nothing. Prints "passed" or the first line of what it raised."""
    print(json.dumps({name: "did not end"}), flush=True)
    said = "passed"
    try:
        check(*arguments)
    except Exception as error:  # any exception is the result of the check
        said = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    print(json.dumps({name: said}), flush=True)
    return said == "passed"


def expect_agreement(lltm: Cell, case: Case) -> None:
    wrong = difference(case, outputs(lltm, case))
    assert wrong is None, wrong


def check_values(lltm: Cell, device: str, dtypes: tuple[torch.dtype, ...]) -> None:
    """Outputs and all gradients against the reference."""
    changes = [{"dtype": dtype} for dtype in dtypes]
    changes += [{"layout": layout} for layout in LAYOUTS]
    changes += [{"grads": grads} for grads in ("h only", "cell only", "expanded")]
    for change in changes:
        expect_agreement(lltm, Case(B=5, I=9, S=33, device=device, **change))
    expect_agreement(lltm, Case(B=0, I=3, S=4, device=device))


def check_operators(namespace: ModuleType, device: str) -> None:
    """`opcheck` of both operators, and an error that names the invalid argument."""
    for dtype in DTYPES:
        z, old_cell, grad = (torch.randn(shape, dtype=dtype, device=device) for shape in ((3, 15), (3, 5), (3, 5)))
        _, new_cell, gates = namespace.pointwise(z, old_cell)
        torch.library.opcheck(namespace.pointwise.default, (z.requires_grad_(), old_cell.requires_grad_()))
        torch.library.opcheck(namespace.pointwise_backward.default, (grad, None, gates, new_cell))
    try:
        namespace.pointwise(torch.zeros(3, 15, device=device), torch.zeros(3, 4, device=device))
    except RuntimeError as error:
        assert "lltm: old_cell has shape [3, 4], but z of shape [3, 15] calls for [3, 5]" in str(error), error
    else:
        raise AssertionError("old_cell of a wrong shape was not refused")


def check_compiled(lltm: Cell, device: str) -> None:
    """The same under `torch.compile` as one graph, with a backend that needs no compiler."""
    whole = torch.compile(lltm, fullgraph=True, backend="aot_eager")
    for change in ({"B": 5}, {"B": 4}, {"B": 5, "dtype": torch.bfloat16}):
        expect_agreement(whole, Case(I=9, S=33, device=device, **change))


def check_autocast(lltm: Cell, device: str) -> None:
    """Under autocast, results have its dtype and gradients the dtype of their inputs."""
    inputs = Case(B=5, I=9, S=33, device=device).inputs()
    for cell in (lltm, torch.compile(lltm, fullgraph=True, backend="aot_eager")):
        with torch.autocast(device, dtype=torch.bfloat16):
            new_h, new_cell = cell(*inputs.values())
        assert (new_h.dtype, new_cell.dtype) == (torch.bfloat16, torch.bfloat16)
        gradients = torch.autograd.grad(new_h.sum() + new_cell.sum(), list(inputs.values()))
        assert {gradient.dtype for gradient in gradients} == {torch.float32}


if __name__ == "__main__":
    sys.exit(run_checks(*sys.argv[1:]))
