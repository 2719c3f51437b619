from dataclasses import replace

import torch

from common.cell.case import input_gradients
from common.exercises.judge import (
    SMALL,
    Failure,
    LearnerError,
    agree,
    cases,
    guarded,
    on_current_stream,
    require,
    stored_once,
)
from common.exercises.judging.repeats import nothing_kept

COPIES = ("clone", "contiguous", "copy_", "_to_copy", "empty_strided")


def check(work):
    cell = work.cell()
    agree(cell, cases(work))
    setup = work.code("setup.py")
    named = "lltm_stage4" in setup and "lltm_stage3" not in setup
    require(named, "setup.py still names stage 3's package; this one is lltm_stage4")
    nothing_kept(work, "lltm.lltm", work.case(*SMALL))
    backward_twice(work)
    for what, changes in (
        ("transposed", {"layout": "transposed"}),
        ("sliced", {"layout": "sliced"}),
        ("expanded", {"grads": "expanded"}),
    ):
        case = work.case(*SMALL, **changes)
        forward, back = counted(work, case)
        no_copies(case, what, forward, back)
    no_copies(case, "expanded", *counted(work, case, expanded=True))
    require(
        forward.all_calls <= 5,
        f"forward makes {describe_calls(forward)}; 5 are enough: cat, addmm, three allocations",
    )
    _, back = counted(work, replace(case, layout="contiguous", grads="cell only"))
    require(
        back.all_calls <= 6,
        f"backward makes {describe_calls(back)}; 6 are enough: two allocations, a zero, mm, mm, sum",
    )
    if back.kernels:
        a_missing_gradient_is_one_zero(work)
    empty_batch(cell, work.case(0, 5, 7))


def backward_twice(work):
    """A second backward over the same graph finds the saved tensors as they were."""
    case = work.case(*SMALL)
    inputs = list(case.inputs().values())
    results = work.cell()(*inputs)
    first, second = (
        torch.autograd.grad(results, inputs, case.gradients(), retain_graph=keep) for keep in (True, False)
    )
    require(
        all(map(torch.equal, first, second)),
        "a second backward over the same graph (retain_graph=True) gives other gradients: the first has changed a "
        "tensor that forward saved",
    )


def no_copies(case, what, forward, back):
    """Neither direction copies a tensor, and each element is stored once, on the current stream."""
    for name, counts in (("forward", forward), ("backward", back)):
        copies = [call for call in counts.calls if call.partition(".")[0] in COPIES]
        read = "old_cell" if name == "forward" else "grad_h or grad_cell"
        require(not copies, f"{name} copies {what} tensors: it calls ATen's {', '.join(copies)}. "
                            f"The kernel accepts {read} with any strides")  # fmt: skip
        stored_once(counts.kernels, 2 * case.B * case.S * case.dtype.itemsize, name)
        on_current_stream(counts.kernels, name)
        guarded(counts.kernels, name)


def a_missing_gradient_is_one_zero(work):
    """A warp that reads the same number in all lanes requests one sector; one that reads 32 zeros requests four."""
    for grads, missing in (("cell only", "grad_h"), ("h only", "grad_cell")):
        _, back = counted(work, work.case(8, 3, 32, grads=grads))
        reads = [row for row in back.kernels.of("backward_kernel", "global load") if missing in row.text]
        sectors, requests = sum(row.sectors for row in reads), sum(row.requests for row in reads)
        require(
            sectors <= requests,
            f"a missing {missing} is read as {sectors // max(1, requests)} sectors per warp: each element of "
            "(B, S) has a zero of its own, but a single zero, expanded, is enough",
        )


def empty_batch(cell, case):
    """The launches accept an empty batch, so the host code does, too."""
    try:
        agree(cell, [case])
    except LearnerError as error:
        raise Failure(
            f"with B=0: {str(error).splitlines()[0]}\nlaunch_forward and launch_backward accept an empty batch, so "
            "forward and backward must, too.\nFor a tensor without elements, view cannot compute the size that -1 "
            "stands for: write out all sizes"
        ) from None


def counted(work, case, expanded=False):
    """Counts what forward and backward of a case call; `expanded`: all rows of old_cell are one in memory."""
    inputs, gradients = case.inputs(), case.gradients()
    if expanded:
        row = inputs["old_cell"].detach()[:1]
        inputs["old_cell"] = row.expand(case.B, case.S).requires_grad_()
    cell = work.cell()
    with work.counting() as forward:
        results = cell(*inputs.values())
    with work.counting() as back:
        input_gradients(results, inputs, gradients)
    return forward, back


def describe_calls(counts):
    """Describes the calls in words."""
    names = ", ".join(f"{number} {name}" for name, number in counts.calls.items())
    return f"{counts.all_calls} calls of ATen ({names})"
