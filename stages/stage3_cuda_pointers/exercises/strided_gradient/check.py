import re
from pathlib import Path

import torch

from common.exercises.judge import SMALL, Failure, LearnerError, agree, cases, guarded, require
from common.exercises.judging.launches import error_reported, stream_under_guard, tensors_on_device_1

ADVICE = {
    "expanded": "This gradient is that of a bare sum(): one number with strides of zero, not B*S numbers in rows",
    "transposed": "These gradients are transposed: in memory, their elements are in a different order",
    "sliced": "These gradients are slices: in memory, other numbers lie between their elements",
    "h only": "new_cell was not used here, so grad_cell is nullopt and counts as zero",
    "cell only": "new_h was not used here, so grad_h is nullopt and counts as zero",
}


def check(work):
    with tensors_on_device_1(work):
        agree(work.cell(), [work.case(*SMALL)])
    extension, inputs = work.load("_C"), [tensor.detach() for tensor in work.case(3, 5, 70).inputs().values()]
    these = sorted(cases(work), key=lambda case: case.layout != "contiguous")  # contiguous ones come first
    for k, grads in enumerate(("h only", "cell only")):
        changes = {"dtype": torch.float64, "layout": "transposed", "grads": grads, "seed": work.seed + 1000 + k}
        these.append(work.case(*SMALL, **changes))
    for case in these:
        try:
            agree(work.cell(), [case])
        except (Failure, LearnerError) as error:
            advice = "\n".join(ADVICE[key] for key in (case.layout, case.grads) if key in ADVICE)
            if "freed" in str(error):
                advice = "contiguous() had to copy this one, and the copy was freed before the launch: give it a name"
            if not advice:
                raise
            raise Failure(f"{str(error).strip()}\n{advice}") from None
    _, new_cell, X, gates = extension.forward(*inputs)
    rows_apart(extension, (new_cell, inputs[1], X, gates))
    none = extension.backward(None, None, inputs[1], X, gates, new_cell, [True] * 5)
    require(
        all(one is None for one in none),
        "if there is no upstream gradient, backward has nothing to compute: return {}",
    )
    given = (new_cell, new_cell, inputs[1], X, gates, new_cell, [True] * 5)
    with work.counting() as counted:
        extension.backward(*given)
    guarded(counted.kernels, "backward")
    stream_under_guard(work, "csrc/lltm.cpp", "backward")
    require(
        not re.search(r"\bstatic\b[^;(]*\bTensor\b[^;(]*[;=]", work.code("csrc/lltm.cpp")),
        "lltm.cpp keeps a tensor in a static variable: its memory is never freed, and two threads in backward "
        "overwrite each other's tensor. Use a local variable: the allocator reuses its memory only after the kernel "
        "has ended",
    )
    try:
        work.by_kernels()
    except Failure as error:
        if "clone" not in str(error):
            raise
        raise Failure(f"{error}\nclone copies a gradient even if it is contiguous; contiguous() does not") from None
    nothing_left(work, given)
    nothing_for_missing(extension, work, given, counted.calls)
    error_reported(work, "backward", *given)


def nothing_left(work, given):
    """Checks that no memory from a call outlives it, for gradients that must be copied."""
    expanded = given[0][:1].expand_as(given[0])
    left = work.beside(Path(__file__).with_name("after_call.py")).left(expanded, expanded, *given[2:])
    require(
        not left,
        f"the result of {' and of '.join(left)} is still in memory after backward has returned: a variable that "
        "outlives the call keeps it, and two threads in backward overwrite each other's tensor. Use a local variable",
    )


def nothing_for_missing(extension, work, given, calls):
    """Checks that a missing gradient needs no call of ATen that backward does not make with both gradients."""
    for name, grads in (("grad_cell", (given[0], None)), ("grad_h", (None, given[1]))):
        with work.counting() as counted:
            extension.backward(*grads, *given[2:])
        more = [called for called, number in counted.calls.items() if number > calls.get(called, 0)]
        require(
            not more,
            f"without {name}, backward calls ATen's {', '.join(more)} more often than with both gradients. The "
            "kernel treats a null pointer as zeros, so nothing has to be allocated or filled",
        )


def rows_apart(extension, kept):
    """Gradients whose units are neighbours in memory, but whose rows are not one behind the other."""
    new_cell, weights, X, gates = kept
    wide = torch.cat([new_cell, -new_cell], dim=1)
    layouts = {
        "columns of a wider tensor, with the strides (2 S, 1)": wide[:, : new_cell.size(1)],
        "one row, expanded to (B, S), with the strides (0, 1)": new_cell[:1].expand_as(new_cell),
    }
    for layout, grad in layouts.items():
        found, expected = (
            extension.backward(one, one, weights, X, gates, new_cell, [True] * 5) for one in (grad, grad.contiguous())
        )
        for got, want in zip(found, expected, strict=True):
            require(
                torch.equal(got, want), f"backward is wrong for gradients that are {layout}: it reads other numbers"
            )
