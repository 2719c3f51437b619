"""What an installed wheel of the cell is put through: `PYTHON -m common.trial PACKAGE`, in any Python that has torch.

Runs where the wheel is to be used: no compiler, another torch, another Python. So it imports torch, the package, and
of the workbook only the reference. Prints JSON before and after each check: a wheel for another torch may crash it.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable

import torch

from .case import LAYOUTS, Case, Cell, difference, outputs

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def main(package: str) -> int:
    """Runs the checks that the package is for; one that cannot be imported fails the first of them."""
    for check in (imported, values, operators, compiled, autocast):
        if check in (imported, values) or has_operators(package):
            say({check.__name__: "did not end"})
            wrong = mistake(check, package)
            say({check.__name__: wrong or "passed"})
            if wrong and check is imported:
                return 1
    return 0


def say(outcome: dict[str, str]) -> None:
    print(json.dumps(outcome), flush=True)


def mistake(check: Callable[[str], None], package: str) -> str | None:
    """The first line of what a check raised; None if nothing."""
    try:
        check(package)
    except Exception as error:  # whatever it is, it is the result
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return None


def has_operators(package: str) -> bool:
    """Whether the package registers operators; one bound by pybind11 does not."""
    return hasattr(sys.modules[f"{package}._C"], "NAMESPACE")


def namespace(package: str) -> object:
    """`torch.ops.NAMESPACE` of a package that does."""
    return getattr(torch.ops, sys.modules[f"{package}._C"].NAMESPACE)


def imported(package: str) -> None:
    """The library finds every function that it takes from torch and Python."""
    importlib.import_module(package)


def lltm_of(package: str) -> Cell:
    """The package's cell."""
    return sys.modules[package].lltm


def values(package: str) -> None:
    """Outputs and all gradients against the reference."""
    registered = has_operators(package)
    cases = [Case(B=5, I=9, S=33, dtype=dtype) for dtype in (DTYPES if registered else DTYPES[:2])]
    cases += [Case(B=5, I=9, S=33, layout=layout) for layout in LAYOUTS]
    cases += [Case(B=5, I=9, S=33, grads=grads) for grads in ("h only", "cell only", "expanded")]
    for case in (*cases, Case(B=0, I=3, S=4)):
        wrong = difference(case, outputs(lltm_of(package), case))
        assert wrong is None, wrong


def samples(package: str, dtype: torch.dtype) -> dict[str, tuple]:
    """Arguments of both operators."""
    z, old_cell, grad = (torch.randn(shape, dtype=dtype) for shape in ((3, 15), (3, 5), (3, 5)))
    _, new_cell, gates = namespace(package).pointwise(z, old_cell)
    return {
        "pointwise": (z.requires_grad_(), old_cell.requires_grad_()),
        "pointwise_backward": (grad, None, gates, new_cell),
    }


def operators(package: str) -> None:
    """`opcheck` of both operators, and a refusal that names what it refuses."""
    for dtype in DTYPES:
        for name, arguments in samples(package, dtype).items():
            torch.library.opcheck(getattr(namespace(package), name).default, arguments)
    try:
        namespace(package).pointwise(torch.zeros(3, 15), torch.zeros(3, 4))
    except RuntimeError as error:
        assert "lltm: old_cell has shape [3, 4], but z of shape [3, 15] calls for [3, 5]" in str(error), error
    else:
        raise AssertionError("old_cell of a wrong shape was not refused")


def compiled(package: str) -> None:
    """The same through `torch.compile` with one graph; of its backends one that needs no compiler."""
    whole = torch.compile(lltm_of(package), fullgraph=True, backend="aot_eager")
    for case in (Case(B=5, I=9, S=33), Case(B=4, I=9, S=33), Case(B=5, I=9, S=33, dtype=torch.bfloat16)):
        wrong = difference(case, outputs(whole, case))
        assert wrong is None, wrong


def autocast(package: str) -> None:
    """Under autocast results have its dtype; gradients that of their inputs."""
    inputs = Case(B=5, I=9, S=33).inputs()
    for lltm in (lltm_of(package), torch.compile(lltm_of(package), fullgraph=True, backend="aot_eager")):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            new_h, new_cell = lltm(*inputs.values())
        assert (new_h.dtype, new_cell.dtype) == (torch.bfloat16, torch.bfloat16)
        gradients = torch.autograd.grad(new_h.sum() + new_cell.sum(), list(inputs.values()))
        assert {gradient.dtype for gradient in gradients} == {torch.float32}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
