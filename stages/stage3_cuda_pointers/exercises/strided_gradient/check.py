from common.exercises.judge import Failure, LearnerError, agree, cases, guarded, require
from common.exercises.judging.launches import error_reported, stream_under_guard

ADVICE = {
    "expanded": "This gradient is that of a bare sum(): one number with strides of zero, not B*S numbers in rows",
    "transposed": "These gradients are transposed: in memory, their elements are in a different order",
    "sliced": "These gradients are slices: in memory, other numbers lie between their elements",
    "h only": "new_cell was not used here, so grad_cell is nullopt and counts as zero",
    "cell only": "new_h was not used here, so grad_h is nullopt and counts as zero",
}


def check(work):
    extension, inputs = work.load("_C"), [tensor.detach() for tensor in work.case(3, 5, 70).inputs().values()]
    for case in sorted(cases(work), key=lambda case: case.layout != "contiguous"):  # contiguous ones come first
        try:
            agree(work.cell(), [case])
        except (Failure, LearnerError) as error:
            advice = ADVICE.get(case.grads) or ADVICE.get(case.layout)
            if "freed" in str(error):
                advice = "contiguous() had to copy this one, and the copy was freed before the launch: give it a name"
            if advice is None:
                raise
            raise Failure(f"{str(error).strip()}\n{advice}") from None
    _, new_cell, X, gates = extension.forward(*inputs)
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
    work.by_kernels()
    error_reported(work, "backward", *given)
