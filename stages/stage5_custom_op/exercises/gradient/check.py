from pathlib import Path

import torch

from common.cell import reference
from common.cell.case import input_gradients
from common.exercises.judge import (
    CALLS,
    OPERATORS,
    SMALL,
    Failure,
    LearnerError,
    agree,
    cases,
    no_silent_second_derivatives,
    require,
    same,
)

REFUSE = (
    "Register a gradient for pointwise_backward that raises an error with once_differentiable in its message. Its "
    "node leads to all that pointwise_backward got, and new_cell, a saved result, leads to z and old_cell"
)
COPIES = ("clone", "contiguous", "copy_", "_to_copy")


def check(work):
    cell = work.cell()
    agree(cell, cases(work))
    probe = work.beside(OPERATORS)
    gates_are_not_differentiable(work, probe)
    saved(work, probe)
    missing_gradient(work, cell)
    strided_gradients(work, cell)
    first_derivatives_with_a_graph(work)
    no_gradient_at_all(work)
    no_silent_second_derivatives(work, cell, REFUSE)
    no_derivative_of_backward(work)
    with_opcheck(work, probe)
    case = work.case(*SMALL)
    agree(lambda *inputs: probe.compiled("lltm", "lltm", False, *inputs), [case])


def arguments(work):
    """z and old_cell, which need gradients."""
    case = work.case(*SMALL)
    z = work.case(case.B, 1, 3 * case.S).inputs()["old_h"]
    return z, case.inputs()["old_cell"]


def gates_are_not_differentiable(work, probe):
    """Autograd treats gates as not differentiable."""
    new_h, new_cell, gates = probe.call("pointwise", *arguments(work))
    require(new_h.requires_grad and new_cell.requires_grad, "new_h and new_cell must require gradients, but do not")
    require(
        not gates.requires_grad,
        "gates requires a gradient, but backward ignores the gradient of gates, so it would be lost silently. "
        "Mark gates with ctx.mark_non_differentiable",
    )


def saved(work, probe):
    """gates and new_cell are saved with save_for_backward, and nothing else is."""
    on_ctx = work.beside(CALLS).attributes("lltm", "lltm", *work.case(*SMALL).inputs().values())
    require(
        not on_ctx,
        f"ctx.{', ctx.'.join(on_ctx)} holds tensors: autograd does not notice when such a tensor is changed before "
        "backward, and an output that is kept there is not freed with the graph. Use ctx.save_for_backward",
    )
    with work.counting() as counted:
        _, new_cell, gates = probe.call("pointwise", *arguments(work))
    enough = new_cell.nbytes + gates.nbytes
    require(
        counted.saved == enough,
        f"ctx.save_for_backward keeps {counted.saved} bytes, but pointwise_backward reads {enough}: gates and "
        "new_cell" + ", which are kept elsewhere" * (counted.saved < enough),
    )


def missing_gradient(work, cell):
    """No zeros are created for an output that was not used, and nothing is computed twice."""
    found = {}
    for grads in ("both", "cell only", "h only"):
        case = work.case(*SMALL, grads=grads)
        inputs = case.inputs()
        results = cell(*inputs.values())
        with work.counting() as counted:
            input_gradients(results, inputs, case.gradients())
        require(
            not any(name.endswith("::pointwise") for name in counted.calls),
            "backward calls pointwise again. gates and new_cell, which forward has computed, are all that "
            "pointwise_backward reads: save these two",
        )
        found[grads] = sum(number for name, number in counted.calls.items() if name.startswith("zeros"))
    for unused, grads in (("new_h", "cell only"), ("new_cell", "h only")):
        require(
            found[grads] <= found["both"],
            f"when {unused} is not used, its gradient becomes a tensor of zeros (calls of zeros: {found[grads]}), "
            "but the operator accepts None: call ctx.set_materialize_grads(False), and pass None on",
        )


def strided_gradients(work, cell):
    """Gradients are passed on as they are, whatever their strides."""
    case = work.case(*SMALL, layout="transposed")
    inputs = case.inputs()
    results = cell(*inputs.values())
    with work.counting() as counted:
        input_gradients(results, inputs, case.gradients())
    copies = [name for name in counted.calls if name.partition(".")[0] in COPIES]
    require(
        not copies,
        f"backward copies transposed gradients: it calls ATen's {', '.join(copies)}. The operator reads any strides",
    )


def first_derivatives_with_a_graph(work):
    """First derivatives with create_graph=True, which other parts of a model may need, are no second derivatives."""
    case = work.case(*SMALL, dtype=torch.float64)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    ones = torch.ones_like(inputs["old_cell"])
    want = reference.backward(ones, ones, **inputs)
    try:
        found = work.beside(Path(__file__).with_name("with_graph.py")).first_derivatives(*inputs.values())
    except LearnerError as error:
        raise Failure(
            f"first derivatives with create_graph=True end with an error ({error}), although they need no second "
            "ones: raise the error in the backward of pointwise_backward"
        ) from None
    for name, got in zip(inputs, found, strict=True):
        same(f"d_{name}", got, want[f"d_{name}"], f"{case}, with create_graph=True")


def no_gradient_at_all(work):
    """Backward may get None for every output: then no input has a gradient."""
    inputs = [tensor.detach() for tensor in work.case(*SMALL).inputs().values()]
    try:
        work.beside(Path(__file__).with_name("with_graph.py")).of_stopped(*inputs)
    except LearnerError as error:
        raise Failure(
            f"where neither new_h nor new_cell has a gradient, backward ends with an error: {error}"
        ) from None


def no_derivative_of_backward(work):
    """pointwise_backward itself raises the error, also where it is called without pointwise."""
    inputs = [tensor.detach() for tensor in arguments(work)]
    where = "a gradient of pointwise_backward, called without pointwise,"
    try:
        work.beside(Path(__file__).with_name("with_graph.py")).derivative_of_backward(*inputs)
    except LearnerError as error:
        said = str(error).partition("\n")[0]
        require("once_differentiable" in said, f"{where} ends with {said!r}, which does not name once_differentiable")
    else:
        raise Failure(f"{where} raises no error: register a gradient for it that does")


def with_opcheck(work, probe):
    """opcheck accepts the registration of the gradient."""
    for test in ("test_autograd_registration", "test_aot_dispatch_dynamic"):
        said = probe.opcheck("pointwise", test, *arguments(work))
        require(not said, f"opcheck's {test}: {said}")
