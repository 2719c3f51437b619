import re

from common.exercises.judge import Failure, agree, cases, require

SEEN = {
    r"check_arguments": "check_arguments is not called: what does not fit would reach the kernel",
    r"Guard\b": "there is no device guard: with tensors on a second GPU the kernel would be launched on the first",
}
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
    written = re.search(r"\bforward\((.*?)\n}", re.sub(r"#include.*", "", work.code("csrc/lltm.cpp")), re.DOTALL)
    for pattern, message in SEEN.items():
        require(written and re.search(pattern, written[1]), message)
    work.by_kernels()
