import re
from dataclasses import replace

from common.exercises.judge import Failure, agree, cases, guarded, refused, require
from common.exercises.judging.launches import (
    checks_before_guard,
    error_reported,
    stream_under_guard,
    tensors_on_device_1,
)
from common.exercises.judging.repeats import call_in_between, nothing_kept, results_kept

STRIDED = (
    "The results are right for contiguous tensors and wrong for this layout: the kernel ignores strides, so it reads "
    "the wrong elements of old_cell"
)


def check(work):
    stream_under_guard(work, "csrc/lltm.cpp", "forward")
    checks_before_guard(work, "csrc/lltm.cpp", "forward")
    with tensors_on_device_1(work):
        agree(work.cell(), [case for case in cases(work) if case.layout == "contiguous"])
    try:
        agree(work.cell(), [case for case in cases(work) if case.layout != "contiguous"])
    except Failure as failure:
        raise Failure(f"{failure}\n{STRIDED}") from None
    call_in_between(work, work.cell())
    case = work.case(3, 5, 70)
    calls = [
        [tensor.detach() for tensor in one.inputs().values()] for one in (case, replace(case, seed=case.seed + 1))
    ]
    results_kept(work, "_C.forward", ("new_h", "new_cell", "X", "gates"), *calls)
    nothing_kept(work, "_C.forward", case)
    inputs = case.inputs()
    with work.counting() as counted:
        work.cell()(*inputs.values())
    filled = [name for name in counted.calls if re.match(r"(new_)?(zero|fill|ones|full)", name)]
    require(
        not filled,
        f"forward calls ATen's {', '.join(filled)}: the kernel writes every element, so empty_like is enough",
    )
    copies = [name for name in counted.calls if re.match(r"clone|copy_|contiguous", name)]
    require(not copies, f"contiguous tensors are copied ({', '.join(copies)}): contiguous() copies only if necessary")
    guarded(counted.kernels, "forward")
    require(
        not re.search(r"\bgates\s*[=({]\s*z\s*[;)}]", work.code("csrc/lltm.cpp")),
        "gates has the memory of z, but the kernel's parameters are __restrict__: they promise that it does not read "
        "what it writes. Allocate gates",
    )
    check_mismatched_arguments(work, {name: tensor.detach() for name, tensor in inputs.items()})
    work.by_kernels()
    error_reported(work, "forward", *(tensor.detach() for tensor in inputs.values()))


def check_mismatched_arguments(work, inputs):
    """Checks that forward rejects arguments that ATen would broadcast, or that are too small for a kernel."""
    for name, other in (("bias", inputs["bias"][:1]), ("old_cell", inputs["old_cell"][:1])):
        try:
            refused(work.load("_C").forward, *(inputs | {name: other}).values(), names=(name,))
        except Failure as failure:
            raise Failure(
                f"{failure}\nHere {name} has shape {tuple(other.shape)}, which does not match the others. "
                "check_arguments reports this, if you call it before anything is computed"
            ) from None
