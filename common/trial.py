"""What an installed wheel of the cell is put through: `PYTHON -m common.trial PACKAGE`, in any Python that has torch.

Runs where the wheel is to be used: no compiler, another torch, another Python. So it imports torch, the package, and of
the workbook only the reference. Prints one line of JSON: the versions, and for each check "passed" or what went wrong.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
from collections.abc import Callable
from types import ModuleType

import torch

from .case import LAYOUTS, Case, difference, outputs

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def main(package: str) -> int:
    """Imports the package and checks it; a package that cannot be imported passes nothing."""
    try:
        cell = importlib.import_module(package)
        failed = ""
    except (ImportError, OSError) as error:
        failed = f"{type(error).__name__}: {error}"
    checks = {"import": failed or "passed"}
    if not failed:
        for check in (values, operators, compiled, autocast):
            if check is values or has_operators(package):
                checks[check.__name__] = outcome(check, cell)
    print(json.dumps({"python": platform.python_version(), "torch": torch.__version__, "checks": checks}))
    return int(any(result != "passed" for result in checks.values()))


def outcome(check: Callable[[ModuleType], None], cell: ModuleType) -> str:
    """"passed", or the first line of what was raised."""
    try:
        check(cell)
    except Exception as error:  # whatever it is, it is the result
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return "passed"


def has_operators(package: str) -> bool:
    """Whether the package registers operators; one bound by pybind11 does not."""
    return hasattr(sys.modules[f"{package}._C"], "NAMESPACE")


def values(cell: ModuleType) -> None:
    """Outputs and all gradients against the reference."""
    registered = has_operators(cell.__name__)
    cases = [Case(B=5, I=9, S=33, dtype=dtype) for dtype in (DTYPES if registered else DTYPES[:2])]
    cases += [Case(B=5, I=9, S=33, layout=layout) for layout in LAYOUTS]
    cases += [Case(B=5, I=9, S=33, grads=grads) for grads in ("h only", "cell only", "expanded")]
    for case in (*cases, Case(B=0, I=3, S=4)):
        wrong = difference(case, outputs(cell.lltm, case))
        assert wrong is None, wrong


def samples(cell: ModuleType, dtype: torch.dtype) -> dict[str, tuple]:
    """Arguments of both operators."""
    z, old_cell, grad = (torch.randn(shape, dtype=dtype) for shape in ((3, 15), (3, 5), (3, 5)))
    _, new_cell, gates = namespace(cell).pointwise(z, old_cell)
    return {
        "pointwise": (z.requires_grad_(), old_cell.requires_grad_()),
        "pointwise_backward": (grad, None, gates, new_cell),
    }


def namespace(cell: ModuleType) -> object:
    """`torch.ops.NAMESPACE` of the package."""
    return getattr(torch.ops, sys.modules[f"{cell.__name__}._C"].NAMESPACE)


def operators(cell: ModuleType) -> None:
    """`opcheck` of both operators, and a refusal that names what it refuses."""
    for dtype in DTYPES:
        for name, arguments in samples(cell, dtype).items():
            torch.library.opcheck(getattr(namespace(cell), name).default, arguments)
    try:
        namespace(cell).pointwise(torch.zeros(3, 15), torch.zeros(3, 4))
    except RuntimeError as error:
        assert "lltm: old_cell has shape [3, 4], but z of shape [3, 15] calls for [3, 5]" in str(error), error
    else:
        raise AssertionError("old_cell of a wrong shape was not refused")


def compiled(cell: ModuleType) -> None:
    """The same through `torch.compile` with one graph; of its backends one that needs no compiler."""
    whole = torch.compile(cell.lltm, fullgraph=True, backend="aot_eager")
    for case in (Case(B=5, I=9, S=33), Case(B=4, I=9, S=33), Case(B=5, I=9, S=33, dtype=torch.bfloat16)):
        wrong = difference(case, outputs(whole, case))
        assert wrong is None, wrong


def autocast(cell: ModuleType) -> None:
    """Under autocast results have its dtype; gradients that of their inputs."""
    inputs = Case(B=5, I=9, S=33).inputs()
    for lltm in (cell.lltm, torch.compile(cell.lltm, fullgraph=True, backend="aot_eager")):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            new_h, new_cell = lltm(*inputs.values())
        assert (new_h.dtype, new_cell.dtype) == (torch.bfloat16, torch.bfloat16)
        gradients = torch.autograd.grad(new_h.sum() + new_cell.sum(), list(inputs.values()))
        assert {gradient.dtype for gradient in gradients} == {torch.float32}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
