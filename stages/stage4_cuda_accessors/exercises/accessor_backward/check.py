import torch

from common.cell import reference
from common.exercises.judge import SMALL, Failure, LearnerError, agree, cases, same
from common.exercises.judging.launches import large_batch, whole_warps


def check(work):
    try:
        agree(work.cell(), [work.case(*SMALL, grads="expanded")])
    except LearnerError as error:
        if "past the end of grad_" not in str(error):
            raise
        raise Failure(
            f"{str(error).strip()}\nIn this call each gradient is one number in memory, expanded to (3, 70) with "
            "strides of zero. An accessor uses the strides, but an index computed by hand does not"
        ) from None
    agree(work.cell(), cases(work))
    with_strides_of_zero(work)
    an_infinite_candidate(work)
    work.by_kernels()
    whole_warps(work, "backward_kernel")
    large_batch(work)


def with_strides_of_zero(work):
    """Gradients with a stride of zero from row to row, or from column to column, but not both."""
    B, _, S = SMALL
    inputs, numbers = work.case(*SMALL).inputs(), work.numbers()
    for shape, what in (((1, S), "row"), ((B, 1), "column")):
        grads = [torch.randn(shape, generator=numbers).to(work.device).expand(B, S) for _ in ("grad_h", "grad_cell")]
        compare(work, inputs, grads, inputs, f"each gradient is one {what}, expanded")


def an_infinite_candidate(work):
    """The candidate of one unit is infinite; where its gradient is finite, it must stay so."""
    case = work.case(*SMALL)
    inputs = case.inputs()
    inputs["bias"].data[2 * case.S] = torch.inf
    _, grad_cell = case.gradients()
    compare(work, inputs, [torch.zeros_like(grad_cell), grad_cell], ["bias"], "one candidate is infinite", 2 * case.S)


def compare(work, inputs, grads, names, what, start=0):
    """Compares gradients with the reference, from the element `start` on."""
    found = torch.autograd.grad(work.cell()(*inputs.values()), [inputs[name] for name in names], grads)
    want = reference.backward(*grads, **{name: tensor.detach() for name, tensor in inputs.items()})
    for name, one in zip(names, found, strict=True):
        same(f"d_{name}", one[start:], want[f"d_{name}"][start:], what, torch.float32)
