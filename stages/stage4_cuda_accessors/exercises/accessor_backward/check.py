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
    one_row_for_all(work)
    work.by_kernels()
    whole_warps(work, "backward_kernel")
    large_batch(work)


def one_row_for_all(work):
    """Gradients with a stride of zero from row to row, but other numbers in each column."""
    B, _, S = SMALL
    inputs, numbers = work.case(*SMALL).inputs(), work.numbers()
    grads = [torch.randn(S, generator=numbers).to(work.device).expand(B, S) for _ in ("grad_h", "grad_cell")]
    found = torch.autograd.grad(work.cell()(*inputs.values()), list(inputs.values()), grads)
    want = reference.backward(*grads, **{name: tensor.detach() for name, tensor in inputs.items()})
    for name, one in zip(inputs, found, strict=True):
        same(f"d_{name}", one, want[f"d_{name}"], "each gradient is one row, expanded", torch.float32)
