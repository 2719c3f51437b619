import torch

from common.cell.case import input_gradients
from common.exercises.judge import Failure, LearnerError, Stopped, agree, cases, require, same

NAMES = ("input", "weights", "bias", "old_h", "old_cell")


def check(work):
    cell, calls = work.cell(), cases(work)
    agree(cell, [case for case in calls if "only" not in case.grads])
    try:
        agree(cell, [case for case in calls if "only" in case.grads])
    except Stopped as error:
        raise Failure(
            f"{error}\nOne output has no gradient in this call: it is std::nullopt, so do not dereference it with *"
        ) from None
    only_what_is_needed(work)
    called_directly(work)
    missing_in_bfloat16(work)


def called_directly(work):
    """Autograd sums a gradient down to its input's shape, so only a direct call shows a wrong shape."""
    case = work.case(3, 5, 70)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    extension = work.load("_C")
    _, new_cell, *saved = extension.forward(*inputs.values())
    found = extension.backward(*case.gradients(), inputs["weights"], *saved, new_cell, [True] * 5)
    for name, gradient in zip(NAMES, found, strict=True):
        got, want = tuple(gradient.shape), tuple(inputs[name].shape)
        require(
            got == want,
            f"d_{name} has shape {got}, expected {want}. Called through autograd, it looks right, because autograd "
            "sums a gradient down to the shape of its input; only a direct call shows the mistake",
        )
    for k, name in enumerate(NAMES):
        flags = [one == name for one in NAMES]
        alone = extension.backward(*case.gradients(), inputs["weights"], *saved, new_cell, flags)[k]
        require(
            alone is not None,
            f"d_{name} is missing if needs_input_grad asks only for it. The order of the flags: {', '.join(NAMES)}",
        )
        same(f"d_{name} if no other gradient is needed", alone, found[k], case)
    nothing = extension.backward(*case.gradients(), inputs["weights"], *saved, new_cell, [False] * 5)
    for name, gradient in zip(NAMES, nothing, strict=True):
        require(gradient is None, f"d_{name} is a tensor, but needs_input_grad says that it is not needed")
    if any(
        one is not None for one in extension.backward(None, None, inputs["weights"], *saved, new_cell, [True] * 5)
    ):
        raise Failure("without grad_h and grad_cell there is no gradient: all five results must stay undefined")


def missing_in_bfloat16(work):
    """Zeros of float32 in place of a missing gradient do not show in float32 or float64, only in a narrower dtype."""
    extension = work.load("_C")
    for grads, missing in (("h only", "grad_cell"), ("cell only", "grad_h")):
        case = work.case(3, 5, 70, dtype=torch.bfloat16, grads=grads)
        inputs = [tensor.detach() for tensor in case.inputs().values()]
        _, new_cell, *saved = extension.forward(*inputs)
        what = f"if {missing} is std::nullopt and the other tensors are bfloat16, backward"
        why = (
            "Zeros in its place need their dtype and device: at::zeros without options makes float32 on the CPU, but "
            "at::zeros_like takes both from a tensor"
        )
        try:
            found = extension.backward(*case.gradients(), inputs[1], *saved, new_cell, [True] * 5)
        except LearnerError as error:
            raise Failure(f"{what} fails: {str(error).splitlines()[0]}\n{why}") from None
        for name, gradient in zip(NAMES, found, strict=True):
            require(gradient.dtype == case.dtype, f"{what} returns d_{name} of dtype {gradient.dtype}\n{why}")


def only_what_is_needed(work):
    """Counts matrix products when only some arguments need a gradient."""
    cell = work.cell()
    for names, most in ((("weights", "bias"), 1), (("input", "old_h"), 1), (("bias", "old_cell"), 0)):
        case = work.case(3, 5, 70, requires_grad=names)
        inputs = case.inputs()
        results = cell(*inputs.values())
        with work.counting() as counted:
            input_gradients(results, inputs, case.gradients())
        products = sum(counted.calls.get(name, 0) for name in ("mm", "addmm", "matmul", "bmm"))
        require(
            products <= most,
            f"with gradients for {' and '.join(names)} only, backward computes {products} matrix products, "
            f"expected {most}: skip those that needs_input_grad does not ask for",
        )
