import re

from common.exercises.judge import Failure, agree, cases, guarded, refused, require
from common.exercises.launches import error_reported

STRIDED = (
    "Contiguous tensors come out right and this layout does not: behind old_cell's pointer the kernel finds another "
    "order, since it knows nothing of strides"
)


def check(work):
    agree(work.cell(), [case for case in cases(work) if case.layout == "contiguous"])
    try:
        agree(work.cell(), [case for case in cases(work) if case.layout != "contiguous"])
    except Failure as failure:
        raise Failure(f"{failure}\n{STRIDED}") from None
    inputs = work.case(3, 5, 70).inputs()
    with work.counting() as counted:
        work.cell()(*inputs.values())
    filled = [name for name in counted.calls if re.match(r"(new_)?(zero|fill|ones|full)", name)]
    require(
        not filled, f"ATen is asked for {', '.join(filled)}: the kernel writes every element, so empty_like will do"
    )
    copies = [name for name in counted.calls if re.match(r"clone|copy_|contiguous", name)]
    require(
        not copies, f"contiguous tensors are copied ({', '.join(copies)}): contiguous() copies only where it must"
    )
    guarded(counted.kernels, "forward")
    what_does_not_fit(work, {name: tensor.detach() for name, tensor in inputs.items()})
    work.by_kernels()
    if work.target == "emulator":
        error_reported(work, "forward", *(tensor.detach() for tensor in inputs.values()))


def what_does_not_fit(work, inputs):
    """Arguments that ATen would broadcast, or of which a kernel would read too few, are refused by name."""
    for name, other in (("bias", inputs["bias"][:1]), ("old_cell", inputs["old_cell"][:1])):
        try:
            refused(work.load("_C").forward, *(inputs | {name: other}).values(), names=(name,))
        except Failure as failure:
            raise Failure(
                f"{failure}\nHere {name} has shape {tuple(other.shape)}, which does not fit the others. "
                "check_arguments says so, if it is called before anything is computed"
            ) from None
